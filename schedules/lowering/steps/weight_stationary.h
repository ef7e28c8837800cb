// Two-dimensional weight-stationary tensor parallelism (Pope et al., arXiv 2211.05102, section 3.2;
// the scaling book's chapter on inference). X of the tensor ranks divide the model's width D, and
// the other Y = tp / X divide the features F. Weights stay in place. Between the parts, each rank
// holds D/XY of the residual stream of the B tokens. For the bf16 matmuls of an MLP:
//
//   [B, D/XY] --all-gather over Y--> [B, D/X] @ [D/X, F/Y] --reduce-scatter over X--> [B, F/XY]
//   [B, F/XY] --all-gather over X--> [B, F/Y] @ [F/Y, D/X] --reduce-scatter over Y--> [B, D/XY]
//
// So the forward moves 2 x 2BD/X bytes over the ranks of Y and 2 x 2BF/Y over the ranks of X
// (FORMULAS E22, where Y has two torus axes: 2BD/(XW) + 4BF/(YW)). The one-dimensional form moves 2
// x 2BD. The backward mirrors this and gathers the input of each matmul again. Attention works on
// the heads of F/XY. Norms see D/XY of each token, so they sum one or two values per token over all
// ranks. Embedding and head divide the vocabulary over all ranks as in the one-dimensional form.

#pragma once

#include <cstdint>
#include <vector>

#include "schedules/lowering/steps/exchange.h"
#include "schedules/lowering/steps/tensor.h"
#include "workload/parts/layer_op.h"

namespace stepsim {

// Returns the exchanges of a layer's ops over X, and the sums of values a token over all tensor
// ranks (TensorExchange::summed_values_per_token), which other layers have as well.
std::vector<OpExchange> width_exchanges(const Layer& layer, const TensorGroup& group);

// Return the bytes that a tensor group sends for the exchanges over X and for the sums, in one
// layer and one micro-batch.
std::int64_t width_bytes(const Layer& layer, const TensorGroup& group, bool forward_twice);
std::int64_t summed_bytes(const Layer& layer, const TensorGroup& group, bool forward_twice);

}  // namespace stepsim
