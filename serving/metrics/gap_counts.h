// GapCounts counts the gaps between tokens by length: all of them, exactly, however many there are.
// Memory grows with the number of different lengths.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace stepsim {

class GapCounts {
 public:
  struct Count {
    Duration gap{};
    std::int64_t count = 0;
  };

  void add(Duration gap, std::int64_t count = 1) {
    if (!counts_.empty() && counts_.back().gap == gap) {
      counts_.back().count += count;
      return;
    }
    if (counts_.size() >= merge_at_) merge();
    counts_.push_back({gap, count});
  }

  // Returns the lengths in ascending order, each once.
  const std::vector<Count>& sorted() {
    merge();
    return counts_;
  }

 private:
  void merge();

  std::vector<Count> counts_;
  std::size_t merge_at_ = std::size_t{1} << 20;
};

}  // namespace stepsim
