// StepDiff lays a step of one trace beside a step of another: where the difference of their times
// comes from, kind by kind and op by op.
//
// Times by kind partition the step (step_parts.h), so their differences add up to the difference of
// the steps, always. Of several ranks it is the mean: sums in picoseconds over ranks, floored; what
// that loses goes to the largest part.
//
// Ops match rank by rank, apart for work and communication, by the longest common subsequence of
// their names; of their kinds, where less than half of the names are in both traces. Where both
// traces tell the layer of at least half of their ops, only ops of the same layer and direction
// match, and those without a layer among themselves. Where the
// sequences differ by more than 2,000 ops, the n-th of a name matches the n-th.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "import/trace/device_trace.h"
#include "sim/base/error.h"
#include "sim/base/units.h"

namespace stepsim {

struct StepDiffOptions {
  std::array<std::optional<std::uint32_t>, 2> steps{};  // unset: usual_step()
};

struct KindDifference {
  std::string kind;  // "all-reduce", "all-reduce (wait + transfer)", "idle"
  std::array<std::uint64_t, 2> count{};
  std::array<Duration, 2> time{};
  Duration difference() const { return time[0] - time[1]; }
};

struct OpDifference {
  std::uint32_t rank = 0;
  SliceKind kind = SliceKind::kOtherWork;
  std::int32_t layer = -1;  // -1: not told
  SliceDirection direction = SliceDirection::kUnknown;
  std::array<std::string, 2> name{};  // empty: unmatched there
  std::array<std::int64_t, 2> nanoseconds{};
  std::int64_t difference() const { return nanoseconds[0] - nanoseconds[1]; }
};

// A rank that was compared: its places in the two traces, and the steps.
struct ComparedRank {
  std::uint32_t rank = 0;
  std::array<std::size_t, 2> places{};
  std::array<TraceStep, 2> steps{};
};

struct StepDiff {
  std::array<Duration, 2> step{};
  std::array<std::string, 2> step_name;
  std::vector<std::uint32_t> ranks;     // compared
  std::vector<ComparedRank> compared;   // the same
  std::vector<KindDifference> by_kind;  // the largest difference first
  std::vector<OpDifference> ops;        // the twenty matched ones that explain most
  std::vector<OpDifference> unmatched;  // the twenty longest
  std::array<std::uint64_t, 2> unmatched_count{};
  std::array<std::int64_t, 2> unmatched_nanoseconds{};
  std::uint64_t matched = 0;
  double score = 1;  // share of the ops of both that are matched
  bool by_name = true;
  bool by_layer = false;
  std::array<double, 2> with_layer{};  // share of the ops of each whose layer is told
  bool tells_waits = false;
  std::vector<std::string> notes;
};

// Adds problems for steps that don't exist. REQUIRES: both have ranks.
StepDiff diff_steps(const DeviceTrace& simulated, const DeviceTrace& real,
                    const StepDiffOptions& options, std::vector<Problem>& problems);

}  // namespace stepsim
