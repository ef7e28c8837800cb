#include "workload/model_counts.h"

#include "workload/kernels.h"
#include "workload/mlp_stack.h"

namespace stepsim {
namespace {

std::int64_t query_width(const ModelSpec& model) {
  return model.heads * model.qk_dim();
}

// Returns the width of queries, keys and values side by side.
std::int64_t qkv_width(const ModelSpec& model) {
  return (model.heads + 2 * model.kv_heads) * model.head_dim;
}

// Returns the number of matrices that read the MLP's input: up, and gate if there is one.
std::int64_t input_matrices(const ModelSpec& model) {
  return model.gated_mlp ? 2 : 1;
}

std::int64_t latent_matrices(const ModelSpec& model) {
  const LatentSpec& latent = model.latent;
  const std::int64_t queries = latent.q_rank > 0
                                   ? latent.q_rank * (model.hidden + query_width(model))
                                   : model.hidden * query_width(model);
  const std::int64_t keys_and_values =
      model.hidden * (latent.kv_rank + latent.rope_dim) +
      latent.kv_rank * model.heads * (latent.nope_dim + latent.v_dim);
  return queries + keys_and_values + model.heads * latent.v_dim * model.hidden;
}

std::int64_t attention_matrices(const ModelSpec& model) {
  if (model.latent.kv_rank > 0) return latent_matrices(model);
  return model.hidden * (qkv_width(model) + query_width(model));
}

std::int64_t attention_vectors(const ModelSpec& model) {
  std::int64_t vectors = 0;
  if (model.latent.kv_rank > 0) {
    vectors += model.latent.q_rank + model.latent.kv_rank;  // scales of the latent vectors' norms
  } else if (model.attention_bias || model.qkv_bias) {
    vectors += qkv_width(model);
  }
  if (model.attention_bias) vectors += model.hidden;
  if (model.qk_norm) vectors += 2 * model.head_dim;
  if (model.attention_sinks) vectors += model.heads;
  return vectors;
}

std::int64_t mlp_matrices(const ModelSpec& model, std::int64_t width) {
  return (input_matrices(model) + 1) * model.hidden * width;
}

std::int64_t mlp_vectors(const ModelSpec& model, std::int64_t width) {
  return model.mlp_bias ? input_matrices(model) * width + model.hidden : 0;
}

std::int64_t norm(const ModelSpec& model) {
  return (model.norm == NormKind::kLayer ? 2 : 1) * model.hidden;
}

struct Counts {
  std::int64_t matrices = 0;  // multiplied with each token
  std::int64_t vectors = 0;   // biases, norm scales, sinks

  Counts& operator+=(const Counts& other) {
    matrices += other.matrices;
    vectors += other.vectors;
    return *this;
  }
};

// `experts`: the number of routed experts to count.
Counts mlp_of(const ModelSpec& model, const BlockKind& kind, std::int64_t experts) {
  if (!kind.experts) {
    return {mlp_matrices(model, model.intermediate), mlp_vectors(model, model.intermediate)};
  }
  const ExpertSpec& spec = model.experts;
  Counts counts{
      .matrices = model.hidden * spec.routed + experts * mlp_matrices(model, spec.intermediate),
      .vectors =
          experts * mlp_vectors(model, spec.intermediate) + (spec.router_bias ? spec.routed : 0)};
  if (spec.shared_intermediate > 0) {
    counts.matrices += mlp_matrices(model, spec.shared_intermediate);
    counts.vectors += mlp_vectors(model, spec.shared_intermediate);
    counts.matrices += spec.shared_gate ? model.hidden : 0;
  }
  return counts;
}

Counts block_of(const ModelSpec& model, std::int64_t layer, std::int64_t experts) {
  const std::int64_t norms = model.parallel_branches ? 1 : model.post_norms ? 4 : 2;
  Counts counts{.matrices = attention_matrices(model),
                .vectors = attention_vectors(model) + norms * norm(model)};
  return counts += mlp_of(model, kind_of(model, layer), experts);
}

Counts blocks_of(const ModelSpec& model, std::int64_t experts) {
  Counts sum;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    sum += block_of(model, layer, experts);
  }
  return sum;
}

// Counts all modules of multi-token prediction. Each has two norms, a projection, a block and a
// last norm.
Counts prediction_of(const ModelSpec& model, std::int64_t experts) {
  Counts sum;
  for (std::int64_t module = 0; module < model.prediction_modules; ++module) {
    sum += {.matrices = 2 * model.hidden * model.hidden, .vectors = 3 * norm(model)};
    sum += block_of(model, model.layers - 1, experts);
  }
  return sum;
}

std::int64_t with_tables(const ModelSpec& model, const Counts& blocks) {
  const std::int64_t table = model.vocabulary * model.hidden;
  const std::int64_t norms = (model.embedding_norm ? 2 : 1) * norm(model);
  return blocks.matrices + blocks.vectors + norms + table + model.learned_positions * model.hidden +
         (model.tied_embeddings ? 0 : table);
}

double pairs_of(const ModelSpec& model, const BlockKind& kind, std::int64_t length,
                AttentionFlops convention) {
  const bool all = convention == AttentionFlops::kFull && !kind.local;
  return attention_pairs(length, model.causal && !all, kind.local ? model.window : 0);
}

}  // namespace

std::int64_t parameter_count(const ModelSpec& model) {
  if (model.kind == ModelKind::kMlpStack) return mlp_stack_parameters(model);
  return with_tables(model, blocks_of(model, model.experts.routed));
}

std::int64_t active_parameter_count(const ModelSpec& model) {
  if (model.kind == ModelKind::kMlpStack) return mlp_stack_parameters(model);
  return with_tables(model, blocks_of(model, model.experts.per_token));
}

std::int64_t prediction_parameter_count(const ModelSpec& model) {
  const Counts counts = prediction_of(model, model.experts.routed);
  return counts.matrices + counts.vectors;
}

std::int64_t matmul_parameter_count(const ModelSpec& model) {
  if (model.kind == ModelKind::kMlpStack) return mlp_stack_parameters(model);
  return blocks_of(model, model.experts.per_token).matrices +
         prediction_of(model, model.experts.per_token).matrices +
         (1 + model.prediction_modules) * model.vocabulary * model.hidden;
}

double model_flops(const ModelSpec& model, std::int64_t sequences, std::int64_t sequence_length,
                   AttentionFlops convention) {
  double pairs = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    pairs += pairs_of(model, kind_of(model, layer), sequence_length, convention);
  }
  pairs += static_cast<double>(model.prediction_modules) *
           pairs_of(model, kind_of(model, model.layers - 1), sequence_length, convention);
  const double tokens = static_cast<double>(sequences) * static_cast<double>(sequence_length);
  const double attention_forward =
      2 * pairs * static_cast<double>(model.heads * (model.qk_dim() + model.v_dim()));
  return 6 * tokens * static_cast<double>(matmul_parameter_count(model)) +
         3 * attention_forward * static_cast<double>(sequences);
}

}  // namespace stepsim
