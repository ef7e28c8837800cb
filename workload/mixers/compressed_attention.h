// Attention to compressed keys (DeepSeek-V4, its report's section 2.3), from the norm's output to
// the branch's result:
//
//   S latent_projection, latent_norm, compress_projection, compress, index_key_projection |
//   T query_up_projection, query_head_norm, rope, index_query_projection, index_scores, attention,
//     result_rope, output_group_projection, out_projection
//
// A token has one vector of head_dim features, key and value of all heads. Layers L attend to those
// of the window. Layers C and H have a compressor besides: it projects a value and a weight of each
// feature and sums the values of `ratio` tokens, by the softmax of the weights and a learned bias
// for each place; in layers C of twice as many, so that neighbours overlap, and with two
// projections of each. The indexer of layers C compresses in the same way to keys of its own
// (sparse_attention.h). Queries are normalised without scales. Results turn back by the position of
// their query, in place; each group of heads then has a matrix to a narrow vector.
//
// Query i of a layer scores min(i, window) keys and i / ratio compressed ones (C: the best top_k).
// FLOPs: 2 x pairs x heads x 2 head_dim. Compressed keys that are chosen are gathered, a vector
// each. Keys, values and the compressor are whole on every tensor rank, which divides heads and
// groups. Compressors and matrices of groups multiply in the type of activations, as published
// weights are.
//
// Not modelled: windows across documents; context ranks that compress their own tokens exchange
// those at their borders; that layers with a table of experts by token (num_hash_layers) choose
// without scores.

#pragma once

#include <vector>

#include "workload/parts/layer_part.h"

namespace stepsim {

// REQUIRES: the model has attention to compressed keys, and `part` is of as_in(model, kind).
std::vector<LayerOp> compressed_attention_ops(const Part& part, const BlockKind& kind);

// Returns the shape of its kernel over `queries` queries of a sequence of `keys` tokens, of which
// `pairs` with compressed keys and without are scored.
AttentionShape compressed_shape(const Part& part, const BlockKind& kind, std::int64_t queries,
                                std::int64_t keys, double pairs);

// Returns the tokens that a compressed key of such a layer stands for; 0: there are none.
std::int64_t compression_of(const ModelSpec& model, const BlockKind& kind);

}  // namespace stepsim
