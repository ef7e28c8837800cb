// PipelineCosts: how long the ops of a pipeline take, for schedules that are planned by time and
// for replay(). Whole numbers of any unit (picoseconds, say): sums are exact.

#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// Times of one micro-batch on one chunk.
struct PipelineCosts {
  std::int64_t forward = 1;
  std::int64_t backward_input = 1;
  std::int64_t backward_weight = 1;
  std::int64_t send = 0;  // from one rank to another; between chunks of one rank it is free
  std::optional<std::int64_t> fused{};  // of a forward with a full backward; none: their sum

  std::int64_t backward() const { return backward_input + backward_weight; }
  std::int64_t all() const { return forward + backward(); }
  std::int64_t fused_or_sum() const { return fused.value_or(all()); }
  friend bool operator==(const PipelineCosts&, const PipelineCosts&) = default;
};

// The longest unit in which all of them are whole, and the same costs in it.
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

// The longest time of an op or a send. A fused op counts as the three ops that it may stand for.
inline std::int64_t longest(const PipelineCosts& costs) {
  return std::max({costs.forward, costs.backward_input, costs.backward_weight, costs.send,
                   (costs.fused.value_or(0) + 2) / 3});
}

// The memory that a micro-batch takes on a chunk, for schedules that are planned within a limit:
// `forward` from F to B, and `weight` (a part of it) from B to W. Any unit. Limits count
// micro-batches of `forward` each.
struct ActivationMemory {
  std::int64_t forward = 1;
  std::int64_t weight = 1;
};

// How long an op takes whose chunks all have these costs.
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
