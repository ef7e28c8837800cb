#include "serving/metrics/gap_counts.h"

#include <algorithm>

namespace stepsim {

void GapCounts::merge() {
  std::sort(counts_.begin(), counts_.end(),
            [](const Count& a, const Count& b) { return a.gap < b.gap; });
  std::size_t kept = 0;
  for (const Count& count : counts_) {
    if (kept > 0 && counts_[kept - 1].gap == count.gap) {
      counts_[kept - 1].count += count.count;
    } else {
      counts_[kept++] = count;
    }
  }
  counts_.resize(kept);
  if (kept > merge_at_ / 2) merge_at_ *= 2;
}

}  // namespace stepsim
