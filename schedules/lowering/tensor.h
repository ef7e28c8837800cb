// Tensor parallelism: where the region of a layer's ops changes, the tensor group communicates.
// The result of lowering a layer is lists of steps: of the forward, of the whole backward, and of
// the backward in two parts, for schedules that run the gradients of inputs (B) and of weights (W)
// at different times. Then what W reads stays until W: the input of each matmul and the gradient of
// its result. Embedding tables are part of B. W communicates nothing but the inputs that it gathers
// again.
//
// With sequence parallelism (Korthikanti et al., arXiv 2205.05198, section 4.2.2):
//
//   forward    S --all-gather--> T --reduce-scatter--> S
//   backward   the mirror: all-gather where the forward reduce-scatters, and the other way round;
//              and the input of a gathered projection is gathered again for its weight gradient,
//              beside the compute ("background"), because only the own part of it was kept
//
// Without: the forward all-reduces at T -> S, the backward all-reduces at S -> T (Shoeybi et al.,
// arXiv 1909.08053).
//
// Bytes a rank sends a block and micro-batch, with boundary = tokens x hidden x 2 bytes:
//   sequence parallel  10 (tp - 1)/tp x boundary (4 forward, 6 backward with the two re-gathers)
//   otherwise           8 (tp - 1)/tp x boundary (2 + 2 all-reduces)

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "schedules/plan/parallel_plan.h"
#include "sim/collectives/collective.h"
#include "sim/op_graph.h"
#include "workload/layers.h"

namespace stepsim {

// Whom a collective of a layer is with: each lane is a communicator and a stream of its own.
enum class Lane : std::uint8_t {
  kTensor,
  kTensorBackward,    // of backwards beside forwards: fused ops
  kTensorRegather,    // inputs gathered again
  kContext,           // keys and values
  kContextGradients,  // their gradients
  kExperts,           // tokens to experts and back
  kExpertsAcross,     // the same between nodes, in two-level dispatch
  kExpertTensor,      // between the ranks that share each expert
};
inline constexpr std::size_t kLanes = 8;
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
};

struct LoweredLayer {
  std::vector<LayerStep> forward;
  std::vector<LayerStep> backward;
  // The same work with W apart, each part behind the communication of its stretch of B: the order
  // of a fused forward and backward, where that communication is to be hidden. B alone and W alone
  // are the steps without and with weight_gradient.
  std::vector<LayerStep> split_backward;
  std::int64_t parameters = 0;           // with the next two
  std::int64_t expert_parameters = 0;    // of routed experts
  std::int64_t sequence_parameters = 0;  // of the S region: alike on every tensor rank
  Bytes input{};  // of the layer, kept on this chip: part of what its first compute step keeps

  bool has_weight_part() const;                   // a step of split_backward is W's
  bool empty() const { return forward.empty(); }  // the model has no such layer

  std::int64_t parameters_of(bool experts) const {
    return experts ? expert_parameters : parameters - expert_parameters;
  }
};

// `boundary`: bytes of [tokens, hidden] of all tokens of a micro-batch. `is_last`: nothing follows
// (the head), so its last region is not left.
LoweredLayer lower_tensor(const Layer& layer, const ParallelPlan& plan, Bytes boundary,
                          bool is_last);

}  // namespace stepsim
