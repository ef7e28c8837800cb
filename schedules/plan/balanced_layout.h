// Divides the layers of a model over the stages of a pipeline so that the slowest stage takes the
// least arithmetic (`layout=balanced`): for models whose layers are not alike, and for the head,
// which costs as much as several layers of a small model.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedules/plan/parallel_plan.h"
#include "workload/model_spec.h"

namespace stepsim {

// Returns how many neighbours each of `parts` takes so that the largest sum of their costs is the
// smallest possible; `last` is added to the last part. Each part has one at least. Cost: O(n) for
// each of some 60 halvings. REQUIRES: 1 <= parts <= costs.size().
std::vector<std::int64_t> divide_evenly(std::span<const double> costs, std::int64_t parts,
                                        double last);

// Returns the layers of each stage, by the FLOPs of a forward (forward_flops() in model_counts.h).
// REQUIRES: the model has at least as many layers as the plan has stages.
std::vector<std::int64_t> balanced_layout(const ParallelPlan& plan, const ModelSpec& model);

}  // namespace stepsim
