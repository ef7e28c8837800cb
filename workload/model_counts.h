// Counts of a model by itself, before any plan: parameters, and the FLOPs that a training step is
// worth (Narayanan et al., arXiv 2104.04473, appendix; PaLM, arXiv 2204.02311, appendix B).

#pragma once

#include <cstdint>

#include "workload/model_spec.h"

namespace stepsim {

// Parameters, as published: every weight, bias and norm scale; a tied table counts once, modules of
// multi-token prediction not at all.
std::int64_t parameter_count(const ModelSpec& model);

// The part of those that one token uses: all but the routed experts that it doesn't visit. The
// embedding's table counts; publications differ, and many leave it out.
std::int64_t active_parameter_count(const ModelSpec& model);

// Further parameters, of the modules of multi-token prediction, without the shared tables.
std::int64_t prediction_parameter_count(const ModelSpec& model);

// Parameters that take part in a matmul for each token: projections, router, MLP, the experts that
// a token visits, and unembedding (tied or not), without embedding look-up, norms and biases. With
// the modules of multi-token prediction, each of which uses the unembedding once more.
std::int64_t matmul_parameter_count(const ModelSpec& model);

enum class AttentionFlops : std::uint8_t { kCausal, kFull };  // s^2/2 or s^2 pairs a sequence

// Model FLOPs of a training step over `sequences` x `sequence_length` tokens: 6 x matmul
// parameters a token + 3 x attention forward, attention forward a layer and sequence =
// 2 x pairs x heads x (qk_dim + v_dim). A layer with a window has the window's own pairs, an
// encoder s^2, under both conventions. No recompute, elementwise work or optimizer.
double model_flops(const ModelSpec& model, std::int64_t sequences, std::int64_t sequence_length,
                   AttentionFlops convention);

}  // namespace stepsim
