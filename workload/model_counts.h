// Counts of a model before any plan: its parameters, and the model FLOPs of a training step
// (Narayanan et al., arXiv 2104.04473, appendix; PaLM, arXiv 2204.02311, appendix B).

#pragma once

#include <cstdint>
#include <vector>

#include "workload/model/model_spec.h"

namespace stepsim {

// Returns the parameters as published: every weight, bias and norm scale. A tied table counts once;
// modules of multi-token prediction do not count.
std::int64_t parameter_count(const ModelSpec& model);

// Returns the parameters that one token uses: all except the routed experts that it does not visit.
// The embedding's table counts here; many publications leave it out.
std::int64_t active_parameter_count(const ModelSpec& model);

// Returns the parameters of all routed experts.
std::int64_t expert_parameter_count(const ModelSpec& model);

// Returns the additional parameters of the modules of multi-token prediction, without the shared
// tables.
std::int64_t prediction_parameter_count(const ModelSpec& model);

// Returns those of parameter_count() and of the modules of prediction that belong to matrices,
// which an optimizer may treat apart: not tables, the head, norms and biases.
std::int64_t matrix_parameter_count(const ModelSpec& model);

// Returns the additional parameters of the vision part, with its projectors.
std::int64_t vision_parameter_count(const ModelSpec& model);

// Returns the model FLOPs of a vision part's forward over the `patches` of a picture: of its
// encoder, and of its projectors.
struct VisionFlops {
  double encoder = 0;
  double projectors = 0;
};
VisionFlops vision_flops(const ModelSpec& model, std::int64_t patches);

// Returns the parameters that take part in a matmul for each token: projections, router, MLP, the
// experts that a token visits, and unembedding (tied or not). Embedding look-up, norms and biases
// do not count. It includes the modules of multi-token prediction, each of which uses the
// unembedding once more.
std::int64_t matmul_parameter_count(const ModelSpec& model);

enum class AttentionFlops : std::uint8_t { kCausal, kFull };  // s^2/2 or s^2 pairs a sequence

// Returns the model FLOPs of a training step over `sequences` x `sequence_length` tokens: 6 x
// matmul parameters per token + 3 x attention forward, where the attention forward of a layer and
// sequence is 2 x pairs x heads x (qk_dim + v_dim). A layer with a window has the window's own
// pairs, and an encoder s^2, under both conventions. Sequences packed of documents of so many
// tokens have the pairs within documents, but under kFull. Recompute, elementwise work and
// optimizer do not count.
double model_flops(const ModelSpec& model, std::int64_t sequences, std::int64_t sequence_length,
                   AttentionFlops convention, std::int64_t document_length = 0);

// The model FLOPs of one sequence's forward, by part of the model; attention counted causal. The
// head includes the modules of multi-token prediction, which run on its stage.
struct ForwardFlops {
  std::vector<double> layers;
  double head = 0;
};
ForwardFlops forward_flops(const ModelSpec& model, std::int64_t sequence_length,
                           std::int64_t document_length = 0);

}  // namespace stepsim
