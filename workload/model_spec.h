// ModelSpec is the shape of a dense decoder transformer: what a Hugging Face config.json says.
// A plain struct of counts; nothing here knows about chips, plans or batches.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

enum class NormKind : std::uint8_t { kRms, kLayer };  // layer norm has a bias besides its scale

struct ModelSpec {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;        // width of the residual stream
  std::int64_t intermediate = 0;  // width of the MLP
  std::int64_t heads = 0;         // query heads
  std::int64_t kv_heads = 0;      // = heads: multi-head; 1: multi-query; between: grouped-query
  std::int64_t head_dim = 0;
  std::int64_t vocabulary = 0;
  std::int64_t learned_positions = 0;  // rows of a learned position embedding; 0: rotary
  bool gated_mlp = true;               // gate and up projection, their product goes down
  bool tied_embeddings = false;        // unembedding shares the embedding's table
  bool attention_bias = false;         // on q, k, v and output projections
  bool mlp_bias = false;
  NormKind norm = NormKind::kRms;
};

// Empty when every count is positive and kv_heads divides heads.
std::vector<Problem> check(const ModelSpec& model);

// Parameters, as published: every weight, bias and norm scale; a tied table counts once.
std::int64_t parameter_count(const ModelSpec& model);

// Parameters that take part in a matmul for each token: projections, MLP and unembedding (tied or
// not), without embedding look-up, norms and biases.
std::int64_t matmul_parameter_count(const ModelSpec& model);

enum class AttentionFlops : std::uint8_t { kCausal, kFull };  // s^2/2 or s^2 pairs a sequence

// Model FLOPs of a training step over `sequences` x `sequence_length` tokens: 6 x matmul
// parameters a token + 3 x attention forward, attention forward a layer and sequence =
// 2 x pairs x heads x 2 x head_dim. No recompute, elementwise work or optimizer (PaLM, app. B).
double model_flops(const ModelSpec& model, std::int64_t sequences, std::int64_t sequence_length,
                   AttentionFlops convention);

}  // namespace stepsim
