// Shapes of published models, for tests: their Hugging Face config.json; GPT-3 from table 2.1 of
// Brown et al. (arXiv 2005.14165) and the vocabulary of GPT-2.

#pragma once

#include "workload/model/model_spec.h"

namespace stepsim {

inline ModelSpec llama3_8b() {
  return {.name = "llama3-8b",
          .layers = 32,
          .hidden = 4096,
          .attention = {.heads = 32, .kv_heads = 8, .head_dim = 128},
          .mlp = {.width = 14336},
          .embedding = {.vocabulary = 128256}};
}

inline ModelSpec llama3_70b() {
  return {.name = "llama3-70b",
          .layers = 80,
          .hidden = 8192,
          .attention = {.heads = 64, .kv_heads = 8, .head_dim = 128},
          .mlp = {.width = 28672},
          .embedding = {.vocabulary = 128256}};
}

inline ModelSpec llama3_405b() {
  return {.name = "llama3-405b",
          .layers = 126,
          .hidden = 16384,
          .attention = {.heads = 128, .kv_heads = 8, .head_dim = 128},
          .mlp = {.width = 53248},
          .embedding = {.vocabulary = 128256}};
}

inline ModelSpec llama2_13b() {
  return {.name = "llama2-13b",
          .layers = 40,
          .hidden = 5120,
          .attention = {.heads = 40, .kv_heads = 40, .head_dim = 128},
          .mlp = {.width = 13824},
          .embedding = {.vocabulary = 32000}};
}

inline ModelSpec gpt3_175b() {
  return {.name = "gpt3-175b",
          .layers = 96,
          .hidden = 12288,
          .attention = {.heads = 96, .kv_heads = 96, .head_dim = 128, .bias = true},
          .mlp = {.width = 49152, .gated = false, .bias = true},
          .norms = {.kind = NormKind::kLayer},
          .embedding = {.vocabulary = 50257, .learned_positions = 2048, .tied = true}};
}

inline ModelSpec mixtral_8x7b() {
  return {.name = "mixtral-8x7b",
          .layers = 32,
          .hidden = 4096,
          .attention = {.heads = 32, .kv_heads = 8, .head_dim = 128},
          .mlp = {.width = 14336},
          .embedding = {.vocabulary = 32000},
          .experts = {.routed = 8, .per_token = 2, .intermediate = 14336}};
}

}  // namespace stepsim
