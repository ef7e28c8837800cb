// Two-dimensional weight-stationary tensor parallelism (Pope et al., arXiv 2211.05102, section 3.2;
// the scaling book's chapter on inference): X of the tensor ranks divide the model's width D, the
// other Y = tp / X the features F. Weights stay; of the tokens B, each rank has D/XY of the
// residual stream between the parts, and of an MLP, say, in bf16:
//
//   [B, D/XY] --all-gather over Y--> [B, D/X] @ [D/X, F/Y] --reduce-scatter over X--> [B, F/XY]
//   [B, F/XY] --all-gather over X--> [B, F/Y] @ [F/Y, D/X] --reduce-scatter over Y--> [B, D/XY]
//
// So in a forward 2 x 2BD/X bytes go over the ranks of Y and 2 x 2BF/Y over those of X (FORMULAS
// E22, where Y has two torus axes: 2BD/(XW) + 4BF/(YW)), against 2 x 2BD of the one-dimensional
// form. The backward mirrors this and gathers the input of each matmul again. Attention works on
// the heads of F/XY. Norms have D/XY of each token, so they sum one or two values a token over all
// ranks; embedding and head divide the vocabulary over all ranks as ever.

#pragma once

#include <cstdint>
#include <vector>

#include "schedules/lowering/exchange.h"
#include "schedules/plan/parallel_plan.h"
#include "workload/layers.h"

namespace stepsim {

// The exchanges of a layer's ops over X, and the sums of its norms. None without tensor_width.
std::vector<OpExchange> width_exchanges(const Layer& layer, const ParallelPlan& plan);

// Bytes that a tensor group sends on behalf of these exchanges, of a layer and micro-batch.
std::int64_t width_bytes(const Layer& layer, const ParallelPlan& plan, bool forward_twice);

}  // namespace stepsim
