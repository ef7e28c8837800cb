// The branch of a layer that mixes tokens through a state (state_spec.h), from its norm to the
// residual addition:
//
//   S norm | T state_projection, (gate_projection), convolution, scan, state_norm,
//   state_out_projection | S residual
//
// state_projection gives q, k, v, the gate of the result and a value or two a head; with kimi_delta
// gates come out of low-rank projections. The convolution runs along the tokens of each feature of
// q, k and v (mamba2: B, C and x). The scan is in chunked_scan.h. With kind mamba
//
//   S norm | T state_projection, convolution, x_projection, step_projection, scan,
//   state_out_projection | S residual
//
// where x_projection makes steps, B and C out of x: partial sums over the tensor group. With kind
// short
//
//   S norm | T state_projection, convolution, state_out_projection | S residual
//
// where the convolution multiplies by a gate before it and by another one behind it.
//
// Tensor parallelism divides heads; groups fewer than `tensor` are on several chips each. Context
// parallelism divides tokens: each rank runs its part from an empty state, and the ranks then
// gather each other's last states and decays (LayerOp::passed_state).
//
// Who keeps what: the convolution its input, the scan q, k, v and the values a head (mamba2,
// and mamba without inner norms, make them again by a second convolution, as their fused kernels
// do), state_norm the scan's result and the gate. States of the chunks are made again in the
// backward.

#pragma once

#include <vector>

#include "workload/parts/layer_part.h"

namespace stepsim {

// Returns the ops of the mixer without norm and addition. The first reads the norm's output.
std::vector<LayerOp> state_ops(const Part& part);

// Returns the bytes that a head of the state takes, in fp32: what a rank of context parallelism
// passes on.
Bytes state_size(const StateSpec& state);

// Returns what serving keeps for a sequence in a layer with a state, instead of keys and values:
// the states of all heads and the last tokens that the convolution reads.
Bytes sequence_state_size(const StateSpec& state, DataType activations);

}  // namespace stepsim
