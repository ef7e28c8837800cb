// Divides the layers of a model over the stages of a pipeline by their arithmetic: for models whose
// layers are not alike, and for the head, which costs as much as several layers of a small model.
// It is what `layout=balanced` begins with; experiment/bounds/fastest_layout.h goes on from there.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedules/plan/parallel_plan.h"
#include "workload/model/model_spec.h"

namespace stepsim {

// Returns how many neighbours each of `parts` takes so that the largest sum of their costs is the
// smallest possible, and of such divisions the most even one (least sum of squares; of several the
// one whose later parts are longer). `last` is added to the last part. Each part has one at least.
// Cost: O(n) for each of some 60 halvings, and parts x n x the longest part. REQUIRES: 1 <= parts
// <= costs.size().
std::vector<std::int64_t> divide_evenly(std::span<const double> costs, std::int64_t parts,
                                        double last);

// Returns the layers of each stage, as many everywhere as far as they divide: the last stages have
// one more, but the very last, which has the head, has none of those. REQUIRES (here and below):
// the model has at least as many layers as the plan has stages.
std::vector<std::int64_t> even_layout(const ParallelPlan& plan, const ModelSpec& model);

// Returns the layers of each stage so that the pipeline rank with the most FLOPs of a forward
// (forward_flops() in model_counts.h) has the fewest possible. A rank's chunks count together;
// they are as even as its layers allow, the longer ones last, where they are held for less time.
std::vector<std::int64_t> balanced_layout(const ParallelPlan& plan, const ModelSpec& model);

}  // namespace stepsim
