#include "workload/model_spec.h"

#include <string_view>

namespace stepsim {
namespace {

std::int64_t query_width(const ModelSpec& model) {
  return model.heads * model.head_dim;
}

// Queries, keys and values side by side.
std::int64_t qkv_width(const ModelSpec& model) {
  return (model.heads + 2 * model.kv_heads) * model.head_dim;
}

// Matrices that read the MLP's input: up, and gate beside it.
std::int64_t input_matrices(const ModelSpec& model) {
  return model.gated_mlp ? 2 : 1;
}

std::int64_t matmul_parameters_of_a_block(const ModelSpec& model) {
  const std::int64_t attention = model.hidden * (qkv_width(model) + query_width(model));
  const std::int64_t mlp = (input_matrices(model) + 1) * model.hidden * model.intermediate;
  return attention + mlp;
}

std::int64_t bias_parameters_of_a_block(const ModelSpec& model) {
  std::int64_t biases = 0;
  if (model.attention_bias) biases += qkv_width(model) + model.hidden;
  if (model.mlp_bias) biases += input_matrices(model) * model.intermediate + model.hidden;
  return biases;
}

}  // namespace

std::vector<Problem> check(const ModelSpec& model) {
  std::vector<Problem> problems;
  const auto at_least = [&problems](std::string_view field, std::int64_t least,
                                    std::int64_t value) {
    if (value >= least) return;
    problems.push_back({std::string(field), "must be at least " + std::to_string(least) + ", is " +
                                                std::to_string(value)});
  };
  at_least("layers", 1, model.layers);
  at_least("hidden", 1, model.hidden);
  at_least("intermediate", 1, model.intermediate);
  at_least("heads", 1, model.heads);
  at_least("kv_heads", 1, model.kv_heads);
  at_least("head_dim", 1, model.head_dim);
  at_least("vocabulary", 1, model.vocabulary);
  at_least("learned_positions", 0, model.learned_positions);
  if (model.heads >= 1 && model.kv_heads >= 1 && model.heads % model.kv_heads != 0) {
    problems.push_back({"kv_heads", "must divide heads (" + std::to_string(model.heads) + "), is " +
                                        std::to_string(model.kv_heads)});
  }
  return problems;
}

std::int64_t parameter_count(const ModelSpec& model) {
  const std::int64_t norm = (model.norm == NormKind::kLayer ? 2 : 1) * model.hidden;
  const std::int64_t block =
      matmul_parameters_of_a_block(model) + bias_parameters_of_a_block(model) + 2 * norm;
  const std::int64_t table = model.vocabulary * model.hidden;
  const std::int64_t positions = model.learned_positions * model.hidden;
  const std::int64_t unembedding = model.tied_embeddings ? 0 : table;
  return table + positions + model.layers * block + norm + unembedding;
}

std::int64_t matmul_parameter_count(const ModelSpec& model) {
  return model.layers * matmul_parameters_of_a_block(model) + model.vocabulary * model.hidden;
}

double model_flops(const ModelSpec& model, std::int64_t sequences, std::int64_t sequence_length,
                   AttentionFlops convention) {
  const double length = static_cast<double>(sequence_length);
  const double tokens = static_cast<double>(sequences) * length;
  const double pairs =
      convention == AttentionFlops::kCausal ? length * length / 2 : length * length;
  const double attention_forward = 2 * pairs * 2 * static_cast<double>(query_width(model));
  return 6 * tokens * static_cast<double>(matmul_parameter_count(model)) +
         3 * attention_forward * static_cast<double>(sequences) * static_cast<double>(model.layers);
}

}  // namespace stepsim
