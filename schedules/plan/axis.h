// Axis is the purpose of a communication in a training plan. It is the key of exposed communication
// in the breakdown and in result files. The kernel (sim/program/op_graph.h) knows axes as numbers;
// the names here go into OpGraph::axes.
//
// Similar types: PlanAxis (parallel_plan.h) is a dimension of the mesh of ranks. Lane
// (schedules/lowering/steps/layer_step.h) is a stream of communication within a layer. Region
// (workload/layers.h) says how activations are divided over chips. Several lanes serve one axis,
// and an axis may join dimensions (dp: cp x dp) or have none (host), so no two of the four sets are
// equal.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/program/op_graph.h"

namespace stepsim {

enum class Axis : std::uint8_t {
  kTensor,
  kContext,
  kExpert,
  kData,  // gradients and parameters
  kPipeline,
  kHost,
  kOther,
};
inline constexpr std::size_t kAxes = 7;
static_assert(kAxes <= kMostAxes);

std::string_view name_of(Axis axis);  // "tp", "cp", "ep", "dp", "pp", "host", "other"

// Returns all names in order, for OpGraph::axes of a training step.
std::vector<std::string> axis_names();

}  // namespace stepsim
