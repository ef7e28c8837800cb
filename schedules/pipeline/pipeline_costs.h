// PipelineCosts are the times of a pipeline's ops, for schedules that are planned by time and for
// replay(). They are whole numbers in any unit (picoseconds, for example), so sums are exact.

#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// The times of one micro-batch on one chunk.
struct PipelineCosts {
  std::int64_t forward = 1;
  std::int64_t backward_input = 1;
  std::int64_t backward_weight = 1;
  std::int64_t send = 0;                // between ranks; sends between chunks of one rank are free
  std::optional<std::int64_t> fused{};  // a forward fused with a full backward; unset: their sum

  std::int64_t backward() const { return backward_input + backward_weight; }
  std::int64_t all() const { return forward + backward(); }
  std::int64_t fused_or_sum() const { return fused.value_or(all()); }
  friend bool operator==(const PipelineCosts&, const PipelineCosts&) = default;
};

// unit_of() returns the longest unit in which all times are whole. in_units() returns the same
// costs in that unit.
inline std::int64_t unit_of(const PipelineCosts& costs) {
  return std::gcd(std::gcd(std::gcd(costs.forward, costs.backward_input),
                           std::gcd(costs.backward_weight, costs.send)),
                  costs.fused.value_or(0));
}
inline PipelineCosts in_units(PipelineCosts costs, std::int64_t unit) {
  for (std::int64_t* time :
       {&costs.forward, &costs.backward_input, &costs.backward_weight, &costs.send}) {
    *time /= unit;
  }
  if (costs.fused) *costs.fused /= unit;
  return costs;
}

// Returns the longest time of an op or a send. A fused op counts as the three ops that it may
// replace.
inline std::int64_t longest(const PipelineCosts& costs) {
  return std::max({costs.forward, costs.backward_input, costs.backward_weight, costs.send,
                   (costs.fused.value_or(0) + 2) / 3});
}

// ActivationMemory is the memory of a micro-batch on a chunk, in any unit, for schedules that are
// planned within a limit: `forward` from F to B, and `weight` (a part of it) from B to W. A limit
// counts micro-batches of `forward` each.
struct ActivationMemory {
  std::int64_t forward = 1;
  std::int64_t weight = 1;
};

// Returns the time of an op if all chunks have these costs.
inline std::int64_t time_of(const PipelineOp& op, const PipelineCosts& costs) {
  switch (op.kind) {
    case PipelineOpKind::kForward:
      return costs.forward;
    case PipelineOpKind::kBackward:
      return costs.backward();
    case PipelineOpKind::kBackwardInput:
      return costs.backward_input;
    case PipelineOpKind::kBackwardWeight:
      return costs.backward_weight;
    case PipelineOpKind::kForwardBackward:
      break;
  }
  return costs.fused_or_sum();
}

}  // namespace stepsim
