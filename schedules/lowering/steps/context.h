// Context parallelism: the tokens of each sequence are divided over the context ranks, and
// attention sees the keys and values of the others. What n ranks send in a layer and micro-batch,
// with B the keys and values of one rank's tokens:
//
//   ring, zigzag_ring   (Liu et al., arXiv 2310.01889) keys and values go round, n - 1 hops in the
//                       forward, each beside the attention of the chunk that is there; in the
//                       backward they go round again, and their gradients with them, n hops, the
//                       last one home. n (n - 1) B forward, n (2 n - 1) B backward
//   all_gather          (Llama 3, arXiv 2407.21783, section 3.3.2) before attention, again before
//                       its backward, and the gradients reduce-scattered: 3 (n - 1) n B
//   ulysses             (Jacobs et al., arXiv 2309.14509) all-to-all: a rank gets some heads of all
//                       tokens; queries, keys and values there and the output back, and their
//                       gradients: 2 (n - 1) (bytes of q, k, v and output of one rank's tokens)
//
// A layer with a state passes that on, whatever the mode: before the scan each rank gathers what
// the others' tokens do to a state (LayerOp::passed_state, S bytes), and its gradient in the
// backward: 2 (n - 1) n S, twice that with the zig-zag split, where a rank has two stretches of
// tokens. Not modelled: the pass over a rank's tokens that finds its S, and what the taps of the
// convolution read of the rank before.
//
// With a causal ring a chunk of later tokens is skipped, so rank r of the contiguous split computes
// r + 1/2 of n chunks and the last one is the slowest: each context rank has a program of its own.
// With the zig-zag split all chunks are equal: half of one.
//
// A partial result is merged with those before it in a kernel of its own, and so are the gradients
// of keys and values. Two chunks of keys and values stand in memory (and two of gradients).

#pragma once

#include <cstdint>
#include <vector>

#include "schedules/lowering/steps/exchange.h"
#include "schedules/plan/parallel_plan.h"
#include "workload/model/model_spec.h"
#include "workload/parts/kernels.h"
#include "workload/parts/layer_op.h"

namespace stepsim {

// ContextShare is the attention that one context rank computes.
struct ContextShare {
  const Ranks& mesh;
  const BatchShape& batch;
  ContextMode mode = ContextMode::kZigzagRing;
  AttentionShape shape{};  // over all keys, as workload/mixers/attention.h gives it
  bool causal = true;
  std::int64_t window = 0;  // as in ModelSpec
  WindowKind window_kind = WindowKind::kSliding;
  std::int64_t rank = 0;  // rank's coordinate along cp
};

// Returns the exchanges of a block's ops "attention" and "scan". REQUIRES: share.mesh.cp > 1.
std::vector<OpExchange> context_exchanges(const Layer& block, const ContextShare& share,
                                          const Precision& precision);

// Returns what the attention of a pass of inference runs whose context ranks are a ring: its parts
// (PassExchange::parts), and beside each the hop that brings the next one.
std::vector<LayerStep> ring_of_pass(const LayerOp& attention, DataType communicated);

// Returns whether context ranks compute different amounts of attention.
bool context_ranks_differ(const Ranks& mesh, ContextMode mode, std::int64_t document_length,
                          const AttentionSpec& attention);

// Messages of the forward that are sent a second time because attention is recomputed: keys and
// values (with ulysses also queries), and the output (ulysses only).
struct ContextAgain {
  bool inputs = false;
  bool outputs = false;
};

// Returns the bytes that a context group sends for one block and one micro-batch.
std::int64_t context_bytes(const AttentionShape& shape, const Ranks& mesh, ContextMode mode,
                           DataType communicated, const ContextAgain& again);
// The same for the states that it passes on. `again`: the forward's are passed a second time.
std::int64_t state_bytes(const Layer& block, const Ranks& mesh, ContextMode mode, bool again);

}  // namespace stepsim
