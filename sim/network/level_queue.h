// LevelQueue holds links that wait for evaluation, roughly lowest level first. Levels that differ
// by less than 1 part in 128 count as equal; among these the last one pushed is popped first. Links
// may be pushed below the last level popped.
//
// A bucket is the exponent and the upper seven bits of the fraction of the level. A bitmap of
// non-empty buckets finds the lowest in three steps. push() and pop() are O(1) and do not allocate.

#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/ids.h"

namespace stepsim {

class LevelQueue {
 public:
  // Levels further than 64 octaves below twice `highest` share the lowest bucket, those above it
  // the highest one. REQUIRES: highest > 0.
  LevelQueue(std::size_t links, double highest)
      : next_(links), base_(prefix(2 * highest) - std::int64_t{kBuckets - 1}) {}

  bool empty() const { return (summary_[0] | summary_[1]) == 0; }

  // REQUIRES: link is not in the queue.
  void push(LinkId link, double level) {
    const std::size_t bucket = bucket_of(level);
    next_[link.index()] = first_[bucket];
    first_[bucket] = link;
    words_[bucket / 64] |= std::uint64_t{1} << (bucket % 64);
    summary_[bucket / 4096] |= std::uint64_t{1} << (bucket / 64 % 64);
  }

  // REQUIRES: !empty()
  LinkId pop() {
    assert(!empty());
    const std::size_t half = summary_[0] != 0 ? 0 : 1;
    const std::size_t word = half * 64 + static_cast<std::size_t>(std::countr_zero(summary_[half]));
    const std::size_t bucket = word * 64 + static_cast<std::size_t>(std::countr_zero(words_[word]));
    const LinkId link = *first_[bucket];
    first_[bucket] = next_[link.index()];
    if (!first_[bucket]) {
      words_[word] &= words_[word] - 1;
      if (words_[word] == 0) summary_[half] &= summary_[half] - 1;
    }
    return link;
  }

 private:
  static constexpr std::size_t kBuckets = 8192;  // 64 octaves of 128

  static std::int64_t prefix(double level) {
    return static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(level) >> 45);
  }

  std::size_t bucket_of(double level) const {
    if (!(level > 0)) return 0;
    const std::int64_t bucket = prefix(level) - base_;
    if (bucket < 0) return 0;
    return bucket < std::int64_t{kBuckets} ? static_cast<std::size_t>(bucket) : kBuckets - 1;
  }

  std::vector<OptionalId<LinkId>> next_;  // by link: the next one in its bucket
  std::int64_t base_;
  std::array<OptionalId<LinkId>, kBuckets> first_{};
  std::array<std::uint64_t, kBuckets / 64> words_{};
  std::array<std::uint64_t, 2> summary_{};
};

}  // namespace stepsim
