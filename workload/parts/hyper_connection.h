// Hyper-connections (arXiv 2409.19606; mHC: 2512.24880, DeepSeek-V4's report, section 2.2): the
// residual of a token is n streams of the model's width h. A branch has a matrix of n h x n (n + 2)
// that makes, out of the normalised streams together, a weight for each stream in the branch's
// input, one for its result in each stream, and n x n by which streams mix, whose rows and columns
// sinkhorn_iterations bring to a sum of one:
//
//   S mapping (matrix, weights, input = sum of streams) | norm, branch | S residual (streams =
//   mixed streams + weight x result)
//
// The embedding's output is copied to all streams; before the head's norm a matrix of n h x n sums
// them up. Streams are in the type of activations, and are what stages of a pipeline hand on.
//
// Passes over memory, with fused kernels (Megatron-Core's use_fused_mhc: projection with its norm,
// sum, residual): the mapping reads the streams twice and writes the input; its backward reads the
// streams, writes their gradients by the matrix and by the sum, and adds both to the residual's.
// The residual reads streams and result and writes streams; its backward reads both and the
// gradient. The mapping keeps the streams, the residual the result. Not modelled: that weights are
// made in fp32; kernels that aren't fused.

#pragma once

#include <vector>

#include "workload/parts/layer_part.h"

namespace stepsim {

// Adds the beginning of a branch: its norm, and with hyper-connections their mapping before it.
void open_branch(const Part& part, OpName mapping, OpName norm, std::vector<LayerOp>& ops);
// Adds its end: its result joins the residual stream or streams.
void close_branch(const Part& part, OpName name, bool bias, std::vector<LayerOp>& ops);

// Returns the ops that copy the embedding's output to all streams, and sum them up for the head.
// REQUIRES: the model has hyper-connections.
LayerOp copy_to_streams(const Part& part);
LayerOp sum_of_streams(const Part& part);

}  // namespace stepsim
