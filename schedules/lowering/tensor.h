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

#include "schedules/lowering/exchange.h"
#include "schedules/lowering/layer_step.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/collectives/collective.h"
#include "sim/program/op_graph.h"
#include "workload/layers.h"

namespace stepsim {

struct LoweredLayer {
  std::vector<LayerStep> forward;
  std::vector<LayerStep> backward;
  // The same work with W apart, each part behind the communication of its stretch of B: the order
  // of a fused forward and backward, where that communication is to be hidden. B alone and W alone
  // are the steps without and with weight_gradient.
  std::vector<LayerStep> split_backward;
  // The forward again in a visit of its own, before the backwards of the layers behind it.
  std::vector<LayerStep> again{};
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
// `exchanges`: of some of its ops, in any order.
LoweredLayer lower_tensor(const Layer& layer, const ParallelPlan& plan, Bytes boundary,
                          bool is_last, const std::vector<OpExchange>& exchanges = {});

}  // namespace stepsim
