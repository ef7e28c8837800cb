// Sparse attention: which tokens a query looks at (DeepSeek-V3.2, arXiv 2512.02556, section 2.1).
//
//   S index_key_projection | T index_query_projection, index_scores, then attention
//
// The indexer has its own narrow queries, one narrow key a token that all its heads share, and a
// weight for each of its heads. index_scores multiplies every query with every key before it, s^2 /
// 2 pairs, and chooses the best top_k; the scores, fp32, go through memory once. Attention then has
// min(i, top_k) pairs for query i, gathered: each query reads the keys and values of its own
// choice.
//
// Where keys are compressed (compressed_attention.h) the indexer compresses its own, in the same
// way, and its queries score one key for `ratio` tokens.
//
// The indexer multiplies in the type of the matmuls (fp8 in DeepSeek's training). Its gradients go
// through the pairs that were chosen. Every tensor rank has the whole indexer, as in the authors'
// and in Megatron's code. With compressed keys the target that the indexer is trained towards
// counts, too: the scores of all heads with the chosen ones, in the forward. Not modelled: that
// target elsewhere; under context parallelism the gather of index keys; that kernels score a block
// of queries at a time, so that fewer scores than all are in memory at once; under a pipeline, that
// a layer which shares a choice may stand on another stage.

#pragma once

#include <vector>

#include "workload/parts/layer_part.h"

namespace stepsim {

// Returns the op of the S region, and those of the T region between the projections and attention.
// REQUIRES: the model has an indexer.
LayerOp index_keys(const Part& part);
std::vector<LayerOp> choose_tokens(const Part& part);

// Returns the forward kernels of index_scores: `pairs` of a query and a key a sequence, in fp32,
// and the choice of the best.
std::vector<Kernel> index_scores(const Part& part, std::int64_t sequences, std::int64_t queries,
                                 std::int64_t keys, double pairs);

// Makes the attention op read what each query has chosen.
void gather_choice(const Part& part, LayerOp& op);

// Returns the bytes that queries read of what `pairs` of them have chosen.
Bytes gathered_size(const Part& part, double pairs);

// Returns the tokens of a key that the indexer scores: more than one where keys are compressed.
std::int64_t tokens_of_index_key(const ModelSpec& model);

// Returns the FLOPs of one product of the indexer's queries and keys over a sequence: with all keys
// before a query, or with the best `top_k` of them (0: all).
double index_flops(const ModelSpec& model, std::int64_t length, std::int64_t top_k);

}  // namespace stepsim
