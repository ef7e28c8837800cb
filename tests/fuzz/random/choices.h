// Choices is a stream of small decisions. It comes from a seed, and is then the same on every
// platform and with every compiler, or from the bytes of a fuzzer, so that a changed byte changes
// one decision. After the last byte every decision is the first of its alternatives.

#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <random>
#include <span>
#include <string_view>

namespace stepsim {

class Choices {
 public:
  explicit Choices(std::uint64_t seed) : random_(std::in_place, seed) {}
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}

  // Returns a number from 0 to count - 1. REQUIRES: 1 <= count <= 2^32.
  std::uint64_t below(std::uint64_t count) { return random_ ? (*random_)() % count : part(count); }

  // Returns a number from `low` to `high`. REQUIRES: low <= high.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }

  // Returns true once in `count` times. It is false after the last byte. REQUIRES: count >= 2.
  bool one_in(std::uint64_t count) { return below(count) == count - 1; }

  // REQUIRES: there are values.
  template <class T>
  const T& pick(std::span<const T> values) {
    return values[below(values.size())];
  }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

  // Returns a divisor of `whole`. REQUIRES: whole >= 1.
  std::int64_t divisor_of(std::int64_t whole) {
    std::int64_t divisor = between(1, whole);
    while (whole % divisor != 0) --divisor;
    return divisor;
  }

 private:
  std::uint64_t part(std::uint64_t count) {
    std::uint64_t bits = 0;
    for (std::uint64_t reach = 1; reach < count && !bytes_.empty(); reach *= 256) {
      bits = bits * 256 + static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
    }
    return bits % count;
  }

  std::optional<std::mt19937_64> random_;
  std::string_view bytes_;
};

}  // namespace stepsim
