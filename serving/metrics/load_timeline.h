// LoadTimeline shows how full a system was over time: at most 256 bins of equal width, each with
// the most that was seen in it. The width doubles when the time runs out of the last bin.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace stepsim {

struct Load {
  std::int64_t running = 0;  // requests in all replicas
  std::int64_t waiting = 0;
  std::int64_t kv_blocks = 0;  // held
};

class LoadTimeline {
 public:
  static constexpr std::size_t kMostBins = 256;

  // REQUIRES: times don't go back.
  void add(Time now, const Load& load) {
    auto bin = static_cast<std::size_t>(now.since_start.count() / width_.count());
    while (bin >= kMostBins) {
      halve();
      bin /= 2;
    }
    // What was last seen lasts until now.
    while (bins_.size() <= bin) bins_.push_back(last_);
    raise(bins_[bin], load);
    last_ = load;
  }

  Duration width() const { return width_; }
  const std::vector<Load>& bins() const { return bins_; }

 private:
  static void raise(Load& most, const Load& load) {
    most.running = std::max(most.running, load.running);
    most.waiting = std::max(most.waiting, load.waiting);
    most.kv_blocks = std::max(most.kv_blocks, load.kv_blocks);
  }

  void halve() {
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      if (i % 2 == 0) {
        bins_[i / 2] = bins_[i];
      } else {
        raise(bins_[i / 2], bins_[i]);
      }
    }
    bins_.resize((bins_.size() + 1) / 2);
    width_ = 2 * width_;
  }

  Duration width_ = std::chrono::microseconds(1);
  std::vector<Load> bins_;
  Load last_{};
};

}  // namespace stepsim
