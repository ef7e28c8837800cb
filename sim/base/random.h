// RandomStream gives random numbers by position: number i of a stream is a function of the seed,
// the use, the owner and i, so what is drawn for one thing never moves what is drawn for another.
// All arithmetic is on integers: the numbers are the same on every machine.
//
//   const RandomStream stream(seed, RandomUse::kArrival, tenant);   // an enumeration of the room
//   stream.at(0), stream.at(1), ...

#pragma once

#include <cstdint>
#include <type_traits>

namespace stepsim {

// SplitMix64 (Steele, Lea, Flood 2014): each bit of the result depends on each bit of x.
constexpr std::uint64_t mixed_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class RandomStream {
 public:
  // Each kind of draw has its own numbers: `use` is an enumerator of the room that draws.
  template <class Use>
  requires std::is_enum_v<Use>
  constexpr RandomStream(std::uint64_t seed, Use use, std::uint64_t owner = 0)
      : key_(mixed_bits(mixed_bits(mixed_bits(seed) + static_cast<std::uint64_t>(use)) + owner)) {}

  // Uniform over all 64-bit numbers.
  constexpr std::uint64_t at(std::uint64_t position) const {
    return mixed_bits(key_ + position * kGolden);
  }
  // Returns another stream, which this one determines.
  constexpr RandomStream next() const {
    RandomStream stream = *this;
    stream.key_ = mixed_bits(key_ ^ kGolden);
    return stream;
  }
  // Uniform from 0 to count - 1, without a visible bias (2^-64 x count). REQUIRES: count > 0.
  constexpr std::uint64_t below(std::uint64_t count, std::uint64_t position) const {
    __extension__ typedef unsigned __int128 Wide;
    return static_cast<std::uint64_t>(Wide{at(position)} * count >> 64);
  }
  // True with this probability, 0 to 1, to 2^-53.
  constexpr bool is_true(std::uint64_t position, double probability) const {
    return static_cast<double>(at(position) >> 11) < probability * 0x1p53;
  }

 private:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

  std::uint64_t key_;
};

}  // namespace stepsim
