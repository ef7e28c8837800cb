// LayerStep is one thing that a pass over a layer does: a run of kernels, or a collective. Lists of
// steps are what a layer becomes under a plan, before the order of micro-batches unrolls them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/chips/kernel.h"
#include "sim/collectives/collective.h"
#include "sim/program/op_graph.h"

namespace stepsim {

// Lane names the group that a collective of a layer runs in. Each lane is a communicator and a
// stream of its own.
enum class Lane : std::uint8_t {
  kTensor,
  kTensorBackward,    // collectives of backwards that run beside forwards (fused ops)
  kTensorRegather,    // gathers inputs again for weight gradients
  kFeatures,          // two-dimensional weights: ranks with the same part of the width
  kFeaturesRegather,  // gathers the inputs of features again
  kWidth,             // ranks that divide the width
  kWidthRegather,
  kContext,           // keys and values
  kContextGradients,  // gradients of keys and values
  kExperts,           // tokens to experts and back
  kExpertTensor,      // between ranks that share an expert
  kDispatch,          // tokens to experts on chips of their own
  kCombine,           // and back
};
inline constexpr std::size_t kLanes = 13;
std::string_view name_of(Lane lane);  // "tp regather"
Axis axis_of(Lane lane);
bool is_regather(Lane lane);

struct LayerStep {
  enum class Kind : std::uint8_t {
    kCompute,
    kCollective,  // the compute after it waits for it
    kDetached,    // a collective beside the next compute step; the one after that waits for it
    kBackground,  // gathers an input again, beside compute, until a step needs it
  };
  Kind kind = Kind::kCompute;
  // For kCompute:
  std::vector<Kernel> kernels;
  bool recomputes = false;             // repeats work whose result the forward did not keep
  bool weight_gradient = false;        // split_backward: belongs to W (any kind of step)
  Bytes kept{};                        // activations kept from the start of the step on
  Bytes let_go{};                      // activations released at the end of the step
  Bytes workspace{};                   // memory used only while the step runs
  bool host_waits = false;             // the host waits for its end (LayerOp::host_reads)
  bool needs_background = false;       // waits for the input that was gathered again
  std::vector<std::uint32_t> needs{};  // tickets of earlier kBackground steps
  // For collectives:
  Lane lane = Lane::kTensor;
  // kBackground: number that waiting steps refer to. Unset: the regather.
  std::optional<std::uint32_t> ticket{};
  CollectiveOp collective = CollectiveOp::kAllGather;
  Bytes bytes{};
  DataType type = DataType::kBf16;
  AlgorithmChoice algorithm = AlgorithmChoice::kAuto;
  std::optional<std::uint32_t> byte_matrix{};  // all-to-all: index into OpGraph::byte_matrices
  std::optional<ExpertHalf> experts{};         // all-to-all of a pass of inference
};

}  // namespace stepsim
