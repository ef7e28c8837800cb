// ReceivedSet is the set of numbers that have come, when most come in order: all below expected(),
// and some beyond. O(1) each; memory of one bit a number between the first gap and the last number.

#pragma once

#include <cstdint>
#include <vector>

namespace stepsim {

class ReceivedSet {
 public:
  std::uint64_t expected() const { return expected_; }
  std::uint64_t beyond() const { return beyond_; }  // numbers beyond the first gap

  bool has(std::uint64_t number) const {
    if (number < expected_) return true;
    if (number - expected_ >= room()) return false;
    return (words_[word(number)] >> (number % 64) & 1) != 0;
  }

  // Returns false if the number was there.
  bool add(std::uint64_t number) {
    if (has(number)) return false;
    if (number == expected_) {
      ++expected_;
      while (beyond_ > 0 && has_bit(expected_)) {
        words_[word(expected_)] &= ~(std::uint64_t{1} << (expected_ % 64));
        ++expected_;
        --beyond_;
      }
      return true;
    }
    while (number - expected_ >= room()) grow();
    words_[word(number)] |= std::uint64_t{1} << (number % 64);
    ++beyond_;
    return true;
  }

  // Returns bit i = has(base + i), for 64 numbers. REQUIRES: base > expected().
  std::uint64_t bits_from(std::uint64_t base) const {
    std::uint64_t bits = 0;
    if (beyond_ == 0) return 0;
    for (std::uint64_t i = 0; i < 64; ++i) bits |= std::uint64_t{has(base + i)} << i;
    return bits;
  }

 private:
  // One word is kept free, so that the ring never holds two numbers in one bit.
  std::uint64_t room() const { return words_.size() < 2 ? 0 : (words_.size() - 1) * 64; }
  std::size_t word(std::uint64_t number) const { return (number / 64) & (words_.size() - 1); }
  bool has_bit(std::uint64_t number) const {
    return (words_[word(number)] >> (number % 64) & 1) != 0;
  }

  void grow() {
    std::vector<std::uint64_t> larger(words_.empty() ? 4 : 2 * words_.size(), 0);
    for (std::uint64_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t number = expected_ / 64 + i;
      larger[number & (larger.size() - 1)] = words_[number & (words_.size() - 1)];
    }
    words_.swap(larger);
  }

  std::uint64_t expected_ = 0;
  std::uint64_t beyond_ = 0;
  std::vector<std::uint64_t> words_;  // a ring; a power of two
};

}  // namespace stepsim
