// The first branch of a block: it mixes tokens, by attention (attention.h), by a state
// (state_mixer.h), or by both side by side.
//
//   S norm | T attention, state | S (norm), residual

#pragma once

#include <vector>

#include "workload/parts/layer_part.h"

namespace stepsim {

// Returns the ops of the branch; none if the kind mixes no tokens. Parallel branches leave the
// addition to the MLP's branch. REQUIRES: `part` is of as_in(model, kind).
std::vector<LayerOp> mixer_branch(const Part& part, const BlockKind& kind);

// A sequence whose tokens are mixed.
struct MixedSequence {
  std::int64_t length = 0;    // tokens
  std::int64_t document = 0;  // of those that it is packed of; 0: it is one document
  bool masked = false;        // counts the scores that masks hide, too
};

// Returns the FLOPs of one sequence's forward that no weight multiplies: the scores of attention
// and their product with the values, and the recurrence of a state (recurrence_flops()). Sparse
// attention over latent vectors counts as it runs, on the vectors that all heads share, and its
// indexer all pairs before a query, as Megatron-Bridge counts them.
double mixing_flops(const ModelSpec& model, const BlockKind& kind, const MixedSequence& sequence);

// Returns the same for forward and backward: three times the forward, but for an indexer, whose
// gradients go through the chosen pairs only.
double mixing_training_flops(const ModelSpec& model, const BlockKind& kind,
                             const MixedSequence& sequence);

}  // namespace stepsim
