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

// Whom a collective of a layer is with: each lane is a communicator and a stream of its own.
enum class Lane : std::uint8_t {
  kTensor,
  kTensorBackward,    // of backwards beside forwards: fused ops
  kTensorRegather,    // inputs gathered again
  kFeatures,          // two-dimensional weights: ranks with the same part of the width
  kFeaturesRegather,  // their inputs gathered again
  kWidth,             // ranks that divide the width
  kWidthRegather,
  kContext,           // keys and values
  kContextGradients,  // their gradients
  kExperts,           // tokens to experts and back
  kExpertTensor,      // between the ranks that share each expert
};
inline constexpr std::size_t kLanes = 11;
std::string_view name_of(Lane lane);  // "tp regather"
Axis axis_of(Lane lane);

struct LayerStep {
  enum class Kind : std::uint8_t {
    kCompute,
    kCollective,  // the compute after it waits for it
    kDetached,    // a collective beside the next compute step; the one after that waits for it
    kBackground,  // gathers an input again, beside compute, until a step needs it
  };
  Kind kind = Kind::kCompute;
  // kCompute
  std::vector<Kernel> kernels;
  bool recomputes = false;             // makes again what its forward did not keep
  bool weight_gradient = false;        // split_backward: belongs to W (any kind of step)
  Bytes kept{};                        // activations that it keeps, from its start on
  Bytes let_go{};                      // activations that nobody needs after its end
  Bytes workspace{};                   // while it runs
  bool needs_background = false;       // the input that was gathered again
  std::vector<std::uint32_t> needs{};  // tickets of kBackground steps before it
  // Collectives
  Lane lane = Lane::kTensor;
  std::uint32_t ticket = 0;  // kBackground: what a step that waits for it calls it; 0: the regather
  CollectiveOp collective = CollectiveOp::kAllGather;
  Bytes bytes{};
  DataType type = DataType::kBf16;
  AlgorithmChoice algorithm = AlgorithmChoice::kAuto;
  std::optional<std::uint32_t> byte_matrix{};  // all-to-all: OpGraph::byte_matrices
};

}  // namespace stepsim
