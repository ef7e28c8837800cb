// fastest_layout() works out layout=balanced: the layers of each pipeline stage with which a step
// takes the least time.
//
//   plan.layout = fastest_layout(experiment, cluster);
//
// It starts from even stages and from balanced_layout(), and moves one layer at a time from the
// rank with the most arithmetic, or from the last stage, to another stage while that makes the step
// shorter by its bound (PlanBounds::close(): the schedule played with kernels at full speed and
// collectives as if alone). Long steps are judged by some of their micro-batches.
//
// It is never worse than even stages: another layout must be faster by kLeastGainOfLayout, and may
// need more memory than they only where a chip has room to spare (kRoomOfLayout of its memory).

#pragma once

#include <cstdint>
#include <vector>

#include "experiment/experiment.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

inline constexpr double kLeastGainOfLayout = 0.002;  // what bounds leave out may eat up less
inline constexpr double kRoomOfLayout = 0.8;         // bounds of memory leave out buffers

// Returns the layers of each stage. `cluster`: that of the plan's steps. The plan's own layout does
// not count. Some 10 ms to 1 s. REQUIRES: the model has at least as many layers as the plan has
// stages.
std::vector<std::int64_t> fastest_layout(const Experiment& experiment, const Cluster& cluster);

}  // namespace stepsim
