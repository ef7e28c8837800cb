// SimulationResult is the complete result of simulate(): totals of every rank, and timelines of the
// requested ranks. Times are exact; sums are integers.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/network/transport/transport_totals.h"
#include "sim/program/op_graph.h"

namespace stepsim {

// Breakdown is the time of a step by cause. The parts of a rank add up to its window to the
// picosecond.
struct Breakdown {
  Duration compute{};                                       // the compute stream runs
  std::array<Duration, kMostAxes> exposed_communication{};  // waits for data that is moving
  Duration bubble{};  // waits for another pipeline stage, or has nothing left to run (pp > 1)
  Duration idle{};    // waits for a peer of its own stage, or has nothing left to run (pp = 1)
  Duration launch{};  // waits for its host to launch the next op; 0 without OpGraph::host

  Duration sum() const;
  friend bool operator==(const Breakdown&, const Breakdown&) = default;
};

struct PathPart {
  std::string label;  // "forward", "backward", "optimizer", "tp", "pp", ...
  Duration duration{};
};

// TimelineOp is one op of a recorded rank. It started when it was posted. Data moved from `moving`
// on; until then collectives and messages waited for their peers. From `ready` to its start it
// waited for its host to launch it.
struct TimelineOp {
  std::uint32_t op = 0;  // position in the rank's program
  std::uint32_t step = 0;
  Time ready;
  Time started;
  Time moving;
  Time ended;
};

struct MemorySample {
  Time at;
  MemoryBytes bytes{};  // from then on
};

// An arrow from the op that sent to the op that received, or from the last member that arrived at
// a collective to another one; both ends are recorded ranks. In a folded job it stands for all
// arrows between ranks that are alike, and exists only with SimulationOptions::share_timelines.
struct TimelineFlow {
  std::uint32_t from_timeline = 0;  // indices into SimulationResult::timelines
  std::uint32_t from_entry = 0;     // index into Timeline::ops
  std::uint32_t to_timeline = 0;
  std::uint32_t to_entry = 0;
};

// Why the compute stream of a rank stands still: the causes that Breakdown adds up.
enum class WaitCause : std::uint8_t {
  kData,         // the data of a communication op moves: exposed communication of its axis
  kOtherStage,   // a communication op waits for a rank of another pipeline stage: bubble
  kPeers,        // it waits for a rank of its own stage: idle
  kNothingLeft,  // the rank has run its last op: bubble with pipeline stages, else idle
  kHost,         // the host has not launched an op that could start: launch
};

// An interval in which the compute stream of a recorded rank waits. These and its compute ops
// cover the run without overlap.
struct TimelineWait {
  Time from;
  Time to;
  WaitCause cause = WaitCause::kNothingLeft;
  std::optional<std::uint32_t> op{};  // that it waits for, or that was not launched; in the program
  std::uint32_t step = 0;             // of `op`
  std::optional<RankId> last{};       // the rank that `op` waits for: the last one to post
  Duration length() const { return to - from; }
};

struct Timeline {
  RankId rank;
  std::vector<TimelineOp> ops;  // in order of their start
  std::vector<MemorySample> memory;
  std::vector<TimelineWait> waits{};  // in order of time
};

// A recorded rank, and its timeline in SimulationResult::timelines.
struct RecordedRank {
  RankId rank;
  std::uint32_t timeline = 0;
};

// Bytes that crossed a link in each of `bins` equal intervals from 0 to bins * bin_width.
struct LinkSeries {
  LinkId link;
  std::vector<double> bytes;
};

// The most that a rank holds at any instant. Several instants may hold equally much: this is the
// first.
struct MemoryPeak {
  Bytes bytes;
  Time at;
  MemoryBytes by_category{};
  // The op of the rank's program that took most at that instant (of several the first). Unset:
  // nothing is held but what was resident.
  std::optional<OpId> op{};
};

struct LinkTotal {
  LinkId link;
  double bytes = 0;        // data that crossed it in the whole run
  double utilization = 0;  // bytes with the library's overhead / (bandwidth x run time)
};

// How many of the ranks were simulated, and what made the others differ (docs/folding.md).
struct FoldStatistics {
  std::size_t ranks = 0;
  std::size_t classes = 0;     // ranks simulated
  std::size_t roles = 0;       // programs and stages: at least as many classes are needed
  std::size_t variations = 0;  // more of them by stragglers
  std::string why_not{};       // why every rank was simulated; empty: one of each class was

  // Classes that differ only by their places in the network, and what that has led to.
  std::size_t places() const { return why_not.empty() ? classes - roles - variations : 0; }
  double factor() const { return static_cast<double>(ranks) / static_cast<double>(classes); }
};

struct SimulatorStatistics {
  std::uint64_t ops = 0;           // that ended
  std::uint64_t repeated_ops = 0;  // of them: not simulated, as they only repeat others
  std::uint64_t events = 0;        // taken from the queue or from the network
  std::uint64_t transfers = 0;
  std::uint64_t rate_updates = 0;
  std::uint64_t packet_hops = 0;
  double wall_s = 0;
  double cpu_s = 0;
  std::int64_t peak_rss_bytes = 0;
  FoldStatistics folding{};
  std::optional<TransportTotals> transport{};  // of packets with one
};

struct SimulationResult {
  Time end;  // last op of the last step
  std::uint32_t steps = 1;
  Duration window{};     // what step time and breakdown cover: [0, end] of one step, or the end of
                         // the first step to the end of the last
  Duration step_time{};  // window / (steps - 1), or the window where there is one step
  std::vector<Breakdown> breakdowns;             // by rank, over the window; each sums to `window`
  Breakdown breakdown;                           // mean over ranks and steps; sums to step_time
  std::vector<PathPart> critical_path;           // of a step; sums to step_time; largest first
  std::vector<MemoryPeak> memory_peaks;          // by rank
  RankId peak_rank;                              // lowest rank of the largest peak
  std::vector<Bytes> host_peaks;                 // by host: offloaded state of all its ranks
  std::array<Bytes, kMostAxes> bytes_by_axis{};  // sent by all ranks in one step
  Flops flops;                                   // of every kernel of every rank in one step
  std::vector<LinkTotal> links;                  // by LinkId
  std::vector<Timeline> timelines;               // of the recorded ranks, in order of rank
  std::vector<RecordedRank> recorded;            // in order of rank
  std::vector<TimelineFlow> flows;
  Duration bin_width{};                       // of link_series
  std::vector<LinkSeries> link_series;        // one of all links that a folded job has as one
  std::vector<std::uint32_t> series_of_link;  // by LinkId: in link_series; empty: none recorded
  std::vector<std::uint32_t> class_of_rank;   // ranks simulated as one; empty: each on its own
  SimulatorStatistics statistics;
};

}  // namespace stepsim
