// CriticalPath tracks, for the running or last op of each stream, the composition of the longest
// chain of causes that ends with it: the time of forward compute, of tensor-parallel communication,
// and so on. An op inherits the composition of the op that released it last, and adds its own
// duration when it ends. Ops start at the instant they are released, so the parts add up to the
// time of the op's end without a gap. No timeline is needed: memory is O(streams x labels).
//
// begin_window() forgets the past: only later time counts.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace stepsim {

class CriticalPath {
 public:
  CriticalPath(std::size_t streams, std::size_t labels)
      : labels_(labels), parts_(streams * labels) {}

  // The op on `stream` continues because of the op on `from`.
  void inherit(RankStreamId stream, RankStreamId from) {
    if (stream == from) return;
    const Duration* source = &parts_[from.index() * labels_];
    Duration* target = &parts_[stream.index() * labels_];
    for (std::size_t label = 0; label < labels_; ++label) target[label] = source[label];
  }

  void add(RankStreamId stream, std::size_t label, Time from, Time to) {
    if (from < window_start_) from = window_start_;
    if (from < to) parts_[stream.index() * labels_ + label] += to - from;
  }

  void begin_window(Time now) {
    window_start_ = now;
    parts_.assign(parts_.size(), Duration());
  }

  // Returns the times by label of the path that ends with the last op of `stream`.
  std::vector<Duration> parts(RankStreamId stream) const {
    const auto begin = parts_.begin() + static_cast<std::ptrdiff_t>(stream.index() * labels_);
    return {begin, begin + static_cast<std::ptrdiff_t>(labels_)};
  }

 private:
  std::size_t labels_;
  Time window_start_;
  std::vector<Duration> parts_;
};

}  // namespace stepsim
