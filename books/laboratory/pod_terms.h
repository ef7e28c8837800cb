// The times of a layer of the two-matmul model on a pod of v5p with FSDP and tensor parallelism, by
// the formulas, in seconds: m, f and k of the derivations of S17 and S19.

#pragma once

#include "books/laboratory/stack_step.h"

namespace stepsim {

inline constexpr double kPodWidth = 8192;  // D
inline constexpr double kChunks = 32;      // of collective matmuls

// Arithmetic of a forward with `tokens` per chip.
inline double pod_math(double tokens, double mlp_width) {
  return predict("E7.math",
                 {{"B", tokens}, {"D", kPodWidth}, {"F", mlp_width}, {"N", 1}, {"C", kV5pFlops}});
}

// One pass of the weights over the FSDP group, with `ways` of tensor parallelism.
inline double pod_weights(double ways, double mlp_width, double axes) {
  return predict("E7.fsdp",
                 {{"D", kPodWidth}, {"F", mlp_width}, {"Y", ways}, {"W", kV5pAxis}, {"MX", axes}});
}

// The gather and the reduce-scatter of activations in one pass.
inline double pod_activations(double tokens, double ways) {
  return predict("E7.tp",
                 {{"B", tokens * ways}, {"D", kPodWidth}, {"X", 1}, {"W", kV5pAxis}, {"MY", 1}});
}

}  // namespace stepsim
