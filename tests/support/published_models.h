// Shapes of published models, for tests: their Hugging Face config.json; GPT-3 from table 2.1 of
// Brown et al. (arXiv 2005.14165) and the vocabulary of GPT-2.

#pragma once

#include "workload/model_spec.h"

namespace stepsim {

inline ModelSpec llama3_8b() {
  return {.name = "llama3-8b",
          .layers = 32,
          .hidden = 4096,
          .intermediate = 14336,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .vocabulary = 128256};
}

inline ModelSpec llama3_70b() {
  return {.name = "llama3-70b",
          .layers = 80,
          .hidden = 8192,
          .intermediate = 28672,
          .heads = 64,
          .kv_heads = 8,
          .head_dim = 128,
          .vocabulary = 128256};
}

inline ModelSpec llama3_405b() {
  return {.name = "llama3-405b",
          .layers = 126,
          .hidden = 16384,
          .intermediate = 53248,
          .heads = 128,
          .kv_heads = 8,
          .head_dim = 128,
          .vocabulary = 128256};
}

inline ModelSpec llama2_13b() {
  return {.name = "llama2-13b",
          .layers = 40,
          .hidden = 5120,
          .intermediate = 13824,
          .heads = 40,
          .kv_heads = 40,
          .head_dim = 128,
          .vocabulary = 32000};
}

inline ModelSpec gpt3_175b() {
  return {.name = "gpt3-175b",
          .layers = 96,
          .hidden = 12288,
          .intermediate = 49152,
          .heads = 96,
          .kv_heads = 96,
          .head_dim = 128,
          .vocabulary = 50257,
          .learned_positions = 2048,
          .gated_mlp = false,
          .tied_embeddings = true,
          .attention_bias = true,
          .mlp_bias = true,
          .norm = NormKind::kLayer};
}

inline ModelSpec mixtral_8x7b() {
  return {.name = "mixtral-8x7b",
          .layers = 32,
          .hidden = 4096,
          .intermediate = 14336,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .vocabulary = 32000,
          .experts = {.routed = 8, .per_token = 2, .intermediate = 14336}};
}

}  // namespace stepsim
