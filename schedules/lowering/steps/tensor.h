// Tensor parallelism: the tensor group communicates where the region of a layer's ops changes. A
// lowered layer is lists of steps: the forward, the whole backward, and the backward in two parts
// for schedules that compute the gradients of inputs (B) and of weights (W) at different times. In
// the split form W's inputs stay in memory until W: the input of each matmul and the gradient of
// its result. Embedding tables are part of B. W communicates only to gather inputs again.
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

#include "schedules/lowering/steps/exchange.h"
#include "schedules/lowering/steps/layer_step.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/collectives/collective.h"
#include "sim/program/op_graph.h"
#include "workload/parts/layer_op.h"

namespace stepsim {

struct LoweredLayer {
  std::vector<LayerStep> forward;
  std::vector<LayerStep> backward;
  // The same work in another order, for a fused forward and backward: each part of W stands behind
  // the communication of its stretch of B and hides it. B alone is the steps without
  // weight_gradient, W alone those with it.
  std::vector<LayerStep> split_backward;
  // The forward again, in a visit of its own before the backwards of the layers behind it.
  std::vector<LayerStep> again{};
  std::int64_t parameters = 0;         // includes the next two
  std::int64_t expert_parameters = 0;  // parameters of routed experts
  std::int64_t sequence_parameters =
      0;                    // parameters of the S region, the same on every tensor rank
  std::int64_t frozen = 0;  // not trained, not among `parameters`; includes the next
  std::int64_t frozen_experts = 0;
  std::int64_t narrow_weights = 0;  // trained or frozen, that narrow matmuls multiply
  std::vector<WeightMatrix> matrices{};
  Bytes lent{};   // what later layers read, too: kept whatever is made again
  Bytes input{};  // input of the layer on this chip, included in what its first compute step keeps
  bool reads_weights_again = true;  // the backward reads weights that this forward reads; no
                                    // table's, and not if the whole forward is repeated

  bool has_weight_part() const;                   // whether a step of split_backward belongs to W
  bool empty() const { return forward.empty(); }  // true: the model has no such layer

  std::int64_t parameters_of(bool experts) const {
    return experts ? expert_parameters : parameters - expert_parameters;
  }
  std::int64_t frozen_of(bool experts) const {
    return experts ? frozen_experts : frozen - frozen_experts;
  }
};

// What a tensor group does with the steps of a layer.
struct TensorGroup {
  std::int64_t ranks = 1;
  std::int64_t width = 1;  // of them that divide the model's width
  bool sequence_parallel = true;
  bool overlaps = false;     // TensorPieces::overlap_tensor
  bool scales_rows = false;  // operands of matmuls have scales for rows or for blocks of them
  std::int64_t tokens = 0;   // of a micro-batch on a context rank
  Precision precision{};

  bool divides_width() const { return width > 1; }
};
TensorGroup tensor_group(const ParallelPlan& plan);

// Returns the bytes that cross the tensor group on the way into an op of the T region, in the type
// of all that crosses: TensorExchange::crossing, or `boundary` as below.
Bytes crossing(const LayerOp& op, Bytes boundary);

// Returns the bytes that the tensor group gathers on the way into an op of the T region, and in the
// backward of one that the T region ends with. If rows or blocks of operands have scales, a narrow
// gradient is gathered twice, by rows and along the tokens (Transformer Engine: both usages of the
// quantizer in grad_output_preprocess).
Bytes gathered_input(const LayerOp& op, const TensorGroup& group, Bytes boundary);
Bytes gathered_gradient(const LayerOp& op, const TensorGroup& group, Bytes boundary);

// `boundary`: bytes of [tokens, hidden] for all tokens of a micro-batch. `is_last`: no layer
// follows (the head), so the last region is not left. `exchanges`: those of some of its ops, in any
// order.
LoweredLayer lower_tensor(const Layer& layer, const TensorGroup& group, Bytes boundary,
                          bool is_last, const std::vector<OpExchange>& exchanges = {});

}  // namespace stepsim
