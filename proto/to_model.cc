#include <array>
#include <cmath>
#include <utility>

#include "proto/to_spec.h"

namespace stepsim {
namespace {

// Far above anything that exists; they keep products of sizes in 64 bits.
void check_upper_limits(const ModelSpec& model, ProblemList& problems) {
  constexpr std::int64_t kMost = 1 << 21;
  const std::array<std::pair<const char*, std::int64_t>, 18> sizes = {
      {{"layers", model.layers},
       {"hidden", model.hidden},
       {"intermediate", model.intermediate},
       {"heads", model.heads},
       {"kv_heads", model.kv_heads},
       {"head_dim", model.head_dim},
       {"vocabulary", model.vocabulary},
       {"learned_positions", model.learned_positions},
       {"window", model.window},
       {"latent.q_rank", model.latent.q_rank},
       {"latent.kv_rank", model.latent.kv_rank},
       {"latent.nope_dim", model.latent.nope_dim},
       {"latent.rope_dim", model.latent.rope_dim},
       {"latent.v_dim", model.latent.v_dim},
       {"experts.routed", model.experts.routed},
       {"experts.intermediate", model.experts.intermediate},
       {"experts.shared_intermediate", model.experts.shared_intermediate},
       {"prediction_modules", model.prediction_modules}}};
  for (const auto& [field, value] : sizes) {
    if (value <= kMost) continue;
    problems.add(std::string("model.") + field,
                 "must be at most " + std::to_string(kMost) + ", is " + std::to_string(value));
  }
}

bool is_transformer(const file::Model& model, ProblemList& problems) {
  if (model.kind() == "mlp_stack") return false;
  if (model.has_kind() && model.kind() != "transformer") {
    problems.add("model.kind", "must be transformer or mlp_stack, is \"" + model.kind() + "\"");
  }
  return true;
}

LatentSpec to_latent(const file::Latent& latent) {
  return {.q_rank = latent.q_rank(),
          .kv_rank = latent.kv_rank(),
          .nope_dim = latent.nope_dim(),
          .rope_dim = latent.rope_dim(),
          .v_dim = latent.v_dim()};
}

ExpertSpec to_experts(const file::Experts& experts) {
  ExpertSpec spec{.routed = experts.routed(),
                  .per_token = experts.per_token(),
                  .intermediate = experts.intermediate(),
                  .shared_intermediate = experts.shared_intermediate(),
                  .first_dense = experts.first_dense(),
                  .router_bias = experts.router_bias(),
                  .shared_gate = experts.shared_gate(),
                  .capacity_factor = experts.capacity_factor(),
                  .load = {experts.load().begin(), experts.load().end()}};
  if (experts.has_every()) spec.every = experts.every();
  return spec;
}

bool has_dense_layers(const ModelSpec& spec) {
  return spec.experts.routed < 1 || spec.experts.first_dense > 0 || spec.experts.every != 1;
}

void check_given(const file::Model& model, const ModelSpec& spec, ProblemList& problems) {
  const auto given = [&problems](bool has, const char* field) {
    if (!has) {
      problems.add(std::string("model.") + field, "must be given: a whole number of at least 1");
    }
  };
  given(model.has_layers(), "layers");
  given(model.has_hidden(), "hidden");
  given(model.has_intermediate() || !has_dense_layers(spec), "intermediate");
  if (spec.kind == ModelKind::kMlpStack) return;
  given(model.has_heads(), "heads");
  given(model.has_vocabulary(), "vocabulary");
}

std::int64_t head_dim_of(const file::Model& model, const ModelSpec& spec, ProblemList& problems) {
  if (model.has_head_dim() || spec.kind == ModelKind::kMlpStack) return model.head_dim();
  if (spec.latent.kv_rank > 0) return spec.latent.nope_dim + spec.latent.rope_dim;
  if (spec.heads < 1 || spec.hidden < 1) return 1;  // the cause is reported
  if (spec.hidden % spec.heads == 0) return spec.hidden / spec.heads;
  problems.add("model.heads", "must divide hidden (" + std::to_string(spec.hidden) +
                                  ") where head_dim is not given, is " +
                                  std::to_string(spec.heads));
  return 1;
}

}  // namespace

ModelSpec to_model(const file::Model& model, ProblemList& problems) {
  const bool transformer = is_transformer(model, problems);
  ModelSpec spec{.name = model.has_name() ? model.name() : "model",
                 .kind = transformer ? ModelKind::kTransformer : ModelKind::kMlpStack,
                 .layers = model.layers(),
                 .hidden = model.hidden(),
                 .intermediate = model.intermediate(),
                 .heads = model.heads(),
                 .kv_heads = model.has_kv_heads() ? model.kv_heads() : model.heads(),
                 .vocabulary = model.vocabulary(),
                 .learned_positions = model.learned_positions(),
                 .rotary = !model.has_rotary() || model.rotary(),
                 .gated_mlp = !model.has_gated_mlp() || model.gated_mlp(),
                 .tied_embeddings = model.tied_embeddings(),
                 .attention_bias = model.attention_bias(),
                 .qkv_bias = model.qkv_bias(),
                 .mlp_bias = model.mlp_bias(),
                 .norm = model.norm() == "layer" ? NormKind::kLayer : NormKind::kRms,
                 .post_norms = model.post_norms(),
                 .parallel_branches = model.parallel_branches(),
                 .embedding_norm = model.embedding_norm(),
                 .dropout = model.dropout(),
                 .qk_norm = model.qk_norm(),
                 .attention_sinks = model.attention_sinks(),
                 .causal = !model.has_causal() || model.causal(),
                 .window = model.window(),
                 .window_pattern = model.window_pattern(),
                 .latent = to_latent(model.latent()),
                 .experts = to_experts(model.experts()),
                 .prediction_modules = model.prediction_modules()};
  check_given(model, spec, problems);
  if (!model.has_intermediate() && !has_dense_layers(spec)) {
    spec.intermediate = spec.experts.intermediate;
    problems.mark_reported("model.intermediate");  // under the experts' own
  }
  spec.head_dim = head_dim_of(model, spec, problems);
  if (model.has_norm() && model.norm() != "rms" && model.norm() != "layer") {
    problems.add("model.norm", "must be rms or layer, is \"" + model.norm() + "\"");
  }
  check_upper_limits(spec, problems);
  problems.add(under("model", check(spec)));
  return spec;
}

}  // namespace stepsim
