// A decoder small enough to check by hand.

#pragma once

#include <string>
#include <utility>

#include "workload/model/model_spec.h"

namespace stepsim {

inline ModelSpec small_model(std::int64_t layers = 4) {
  return {.name = "small",
          .layers = layers,
          .hidden = 512,
          .attention = {.heads = 8, .kv_heads = 4, .head_dim = 64},
          .mlp = {.width = 1024},
          .embedding = {.vocabulary = 1000}};
}

inline ModelSpec named(std::string name) {
  ModelSpec model = small_model();
  model.name = std::move(name);
  return model;
}

}  // namespace stepsim
