// CriticalPath tracks, for the running op and the last ended op of each stream, the composition of
// the longest chain of causes that ends with it: the time of forward compute, of tensor-parallel
// communication, and so on. An op inherits the composition of the op that released it last, and
// adds its own duration when it ends. Ops start at the instant they are released, so the parts add
// up to the time of the op's end without a gap. No timeline is needed: memory is O(streams x
// labels).
//
// What an op inherits depends on no order of calls within an instant: a stream that ends several
// ops at one instant (those after the first take no time) hands on what the first one ended with.
//
// begin_window() forgets the past: only later time counts.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace stepsim {

class CriticalPath {
 public:
  // Without labels it tracks nothing.
  CriticalPath(std::size_t streams, std::size_t labels)
      : labels_(labels), rows_(2 * streams * labels), running_(streams, 0) {}

  // The op that starts on `stream` was released by the last op that ended on `from`.
  void start(RankStreamId stream, RankStreamId from) { copy(ended(from), running(stream)); }

  // The op that runs on `stream` goes on because of the op that runs on `from`.
  void join(RankStreamId stream, RankStreamId from) {
    if (stream != from) copy(running(from), running(stream));
  }

  // The op that runs on `stream` ends, the first one of the stream at this instant.
  void end(RankStreamId stream) { running_[stream.index()] ^= 1; }

  // What waits for `stream` hands on what its last op ended with.
  void follow(RankStreamId follower, RankStreamId stream) { copy(ended(stream), ended(follower)); }

  void add(RankStreamId stream, std::size_t label, Time from, Time to) {
    if (from < window_start_) from = window_start_;
    if (from < to && labels_ > 0) running(stream)[label] += to - from;
  }

  void begin_window(Time now) {
    window_start_ = now;
    rows_.assign(rows_.size(), Duration());
  }

  // Returns the rows of each stream: of its last ended op, and of the one that runs.
  std::vector<Duration> past() const {
    std::vector<Duration> rows;
    rows.reserve(rows_.size());
    for (std::uint32_t stream = 0; stream < running_.size(); ++stream) {
      rows.insert(rows.end(), ended(RankStreamId(stream)), ended(RankStreamId(stream)) + labels_);
      rows.insert(rows.end(), running(RankStreamId(stream)),
                  running(RankStreamId(stream)) + labels_);
    }
    return rows;
  }
  // Returns by label how much longer all paths have become since `past`, if equally much: those of
  // streams for which `moved(stream)` is true, and of running ops only for which `runs(stream)` is.
  template <typename Moved, typename Runs>
  std::optional<std::vector<Duration>> growth(const std::vector<Duration>& past, const Moved& moved,
                                              const Runs& runs) const {
    std::optional<std::vector<Duration>> growth;
    for (std::uint32_t number = 0; number < running_.size(); ++number) {
      const RankStreamId stream(number);
      if (!moved(stream)) continue;
      for (std::size_t row = 0; row < (runs(stream) ? 2U : 1U); ++row) {
        const Duration* const now = row == 0 ? ended(stream) : running(stream);
        const Duration* const then = past.data() + (2 * std::size_t{number} + row) * labels_;
        if (!growth) {
          growth.emplace(labels_);
          for (std::size_t label = 0; label < labels_; ++label) {
            (*growth)[label] = now[label] - then[label];
          }
        }
        for (std::size_t label = 0; label < labels_; ++label) {
          if (now[label] - then[label] != (*growth)[label]) return std::nullopt;
        }
      }
    }
    return growth;
  }
  // The paths of these streams become longer by `times` that.
  template <typename Moved>
  void grow(std::int64_t times, const std::vector<Duration>& growth, const Moved& moved) {
    for (std::uint32_t number = 0; number < running_.size(); ++number) {
      const RankStreamId stream(number);
      if (!moved(stream)) continue;
      for (std::size_t label = 0; label < labels_; ++label) {
        ended(stream)[label] += times * growth[label];
        running(stream)[label] += times * growth[label];
      }
    }
  }

  // Returns below, at or above 0 as the running op of `a` comes before, with or behind that of `b`
  // in an order of compositions, which names neither.
  int compare(RankStreamId a, RankStreamId b) const { return three_way(running(a), running(b)); }
  int compare_ended(RankStreamId a, RankStreamId b) const { return three_way(ended(a), ended(b)); }

  // Returns the times by label of the path that ends with the last op of `stream`.
  std::vector<Duration> parts(RankStreamId stream) const {
    return {ended(stream), ended(stream) + labels_};
  }

 private:
  // A stream has two rows: that of the op that runs, and that of the last one that has ended.
  Duration* row(RankStreamId stream, std::size_t which) {
    return rows_.data() + (2 * stream.index() + which) * labels_;
  }
  const Duration* row(RankStreamId stream, std::size_t which) const {
    return rows_.data() + (2 * stream.index() + which) * labels_;
  }
  Duration* running(RankStreamId stream) { return row(stream, running_[stream.index()]); }
  const Duration* running(RankStreamId stream) const {
    return row(stream, running_[stream.index()]);
  }
  Duration* ended(RankStreamId stream) { return row(stream, running_[stream.index()] ^ 1U); }
  const Duration* ended(RankStreamId stream) const {
    return row(stream, running_[stream.index()] ^ 1U);
  }

  void copy(const Duration* from, Duration* to) const {
    for (std::size_t label = 0; label < labels_; ++label) to[label] = from[label];
  }
  int three_way(const Duration* a, const Duration* b) const {
    const auto [first, second] = std::mismatch(a, a + labels_, b);
    if (first == a + labels_) return 0;
    return *first < *second ? 1 : -1;
  }

  std::size_t labels_;
  Time window_start_;
  std::vector<Duration> rows_;         // by stream: two, each by label
  std::vector<std::uint8_t> running_;  // by stream: which of its rows is that of the running op
};

}  // namespace stepsim
