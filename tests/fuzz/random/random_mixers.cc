// Layers that mix tokens in other ways than plain attention: states, sparse and local attention of
// another size, layers of one branch.

#include <string>

#include "tests/fuzz/random/random_plan.h"

namespace stepsim {
namespace {

StateSpec random_state(Choices& choices, const ParallelPlan& plan) {
  StateSpec state{
      .kind = choices.pick({StateKind::kMamba2, StateKind::kGatedDelta, StateKind::kKimiDelta,
                            StateKind::kLightning, StateKind::kMamba, StateKind::kShort})};
  state.heads = plan.mesh.tp * choices.pick({4, 2, 8});
  state.groups = choices.one_in(2) ? plan.mesh.tp : state.heads;
  state.key_dim = choices.pick({32, 16, 64});
  state.value_dim = choices.pick({64, 32, 96});
  state.convolution = choices.pick({4, 0, 3});
  state.chunk = choices.pick({64, 16, 100});
  state.bias = choices.one_in(6);
  state.inner_norm = !choices.one_in(4);
  if (state.kind == StateKind::kKimiDelta || state.kind == StateKind::kMamba) state.rank = 24;
  state.full_gate = state.kind == StateKind::kKimiDelta && choices.one_in(3);
  state.convolution_bias = choices.one_in(2);
  if (state.kind == StateKind::kMamba || state.kind == StateKind::kShort) {
    state.heads *= 32;
    state.groups = state.value_dim = 1;
    state.convolution = 4;
  }
  return state;
}

void choose_state(Choices& choices, const ParallelPlan& plan, ModelSpec& model) {
  model.attention.window = 0;
  model.parallel_branches = false;
  model.state = random_state(choices, plan);
  model.mixer_pattern = choices.pick({"SSG", "S", "B", "S-G-"});
  if (model.mixer_pattern == "S-G-" && model.experts.routed == 0) model.mlp_pattern = "-D-D";
  if (model.mixer_pattern == "S" && model.experts.routed == 0 && choices.one_in(2)) {
    model.mlp_pattern = "-";
  }
}

// A block of shared weights before every second state.
void choose_shared(Choices& choices, ModelSpec& model) {
  const bool plain = model.experts.routed == 0 && model.latent.kv_rank == 0 &&
                     model.attention.query_rank == 0 && model.norms.pre && !model.norms.post &&
                     !model.parallel_branches && model.prediction.modules == 0;
  if (!plain || !choices.one_in(2)) return;
  model.mixer_pattern = choices.pick({"SZ", "Z"});
  model.mlp_pattern = choices.one_in(2) ? "-" : "D";
  model.shared = {.blocks = choices.pick({1, 2}),
                  .adapter_rank = choices.pick({16, 0}),
                  .attention_adapter_rank = choices.pick({16, 0})};
}

// Each layer looks up vectors, and every second MLP is half as wide.
void choose_widths(Choices& choices, const ParallelPlan& plan, ModelSpec& model) {
  if (choices.one_in(10)) model.embedding.of_layers = 16;
  if (model.mlp.width % (2 * plan.mesh.tp) == 0 && choices.one_in(10)) {
    model.mlp.widths = {model.mlp.width, model.mlp.width / 2};
  }
}

void choose_sparse(Choices& choices, ModelSpec& model) {
  model.attention.causal = true;
  model.attention.window = 0;
  model.parallel_branches = false;
  model.mixer_pattern = choices.pick({"I", "GI", "Ii"});
  model.indexer = {
      .heads = choices.pick({4, 1}), .head_dim = 32, .top_k = choices.pick({16, 4096})};
}

// Local layers have half of the key-value heads, narrower ones, chunks, or the keys of others.
void choose_local(Choices& choices, const ParallelPlan& plan, ModelSpec& model) {
  model.attention.window_kind = choices.pick({WindowKind::kChunked, WindowKind::kSliding});
  model.mixer_pattern = choices.pick({"LG", "LlGg", "LLG"});
  if (choices.one_in(2)) {
    model.local = {
        .heads = model.attention.heads, .kv_heads = plan.mesh.tp, .head_dim = 16, .value_dim = 32};
    if (model.attention.heads % plan.mesh.tp != 0) model.local.kv_heads = model.attention.heads;
  }
  model.attention.values_are_keys = model.attention.value_dim == 0 && choices.one_in(4);
}

// Compressed keys in all layers, with an indexer or all of them (DeepSeek-V4).
void choose_compressed(Choices& choices, const ParallelPlan& plan, ModelSpec& model) {
  const AttentionSpec& plain = model.attention;
  model.latent = {};
  model.local = {};
  model.parallel_branches = false;
  model.attention = {.heads = plain.heads,
                     .kv_heads = 1,
                     .head_dim = plain.head_dim,
                     .query_rank = 48,
                     .sinks = plain.sinks,
                     .window = choices.pick({16, 64})};
  model.mixer_pattern = choices.pick({"CH", "LCH", "H", "C"});
  model.compressed = {.ratio = choices.pick({4, 2}),
                      .heavy_ratio = choices.pick({16, 8}),
                      .rope_dim = choices.pick({16, 0}),
                      .output_groups = plan.mesh.tp,
                      .output_rank = choices.pick({32, 16})};
  if (model.mixer_pattern == "H") return;
  model.indexer = {.heads = choices.pick({4, 1}), .head_dim = 32, .top_k = choices.pick({16, 256})};
}

// Several residual streams.
void choose_streams(Choices& choices, ModelSpec& model) {
  const bool fits = model.norms.pre && !model.norms.post && !model.parallel_branches &&
                    model.embedding.of_layers == 0 &&
                    model.mixer_pattern.find_first_of("NXZ") == std::string::npos;
  if (!fits || !choices.one_in(8)) return;
  model.hyper = {.streams = choices.pick({4, 2}), .sinkhorn_iterations = choices.pick({20, 0})};
}

// Small pictures: patches, blocks and projectors of their own.
void choose_vision(Choices& choices, ModelSpec& model) {
  model.vision = {.layers = choices.pick({1, 2}),
                  .hidden = choices.pick({64, 96}),
                  .heads = choices.pick({4, 2}),
                  .intermediate = choices.pick({96, 128}),
                  .patch = choices.pick({14, 2}),
                  .frames = choices.pick({1, 2}),
                  .merge = choices.pick({1, 2}),
                  .positions = choices.pick({0, 100}),
                  .projectors = choices.pick({1, 2})};
}

}  // namespace

void choose_mixers(Choices& choices, RandomJob& job) {
  ModelSpec& model = job.model;
  const bool latent = model.latent.kv_rank > 0;
  if (!latent && choices.one_in(8)) model.attention.value_dim = choices.pick({16, 48});
  if (choices.one_in(8)) {
    model.attention.gate = choices.pick({AttentionGate::kValue, AttentionGate::kHead});
  }
  model.norms.pre = !model.norms.post || !choices.one_in(2);
  model.attention.qk_norm_whole = !latent && !model.attention.qk_norm && choices.one_in(8);
  model.norms.parallel = model.parallel_branches && choices.one_in(2);
  if (!latent && !model.parallel_branches && choices.one_in(12)) model.attention.query_rank = 48;
  model.head_projection = choices.one_in(12);
  choose_widths(choices, job.plan, model);
  if (choices.one_in(5)) {
    choose_state(choices, job.plan, model);
    choose_shared(choices, model);
  } else if (choices.one_in(8)) {
    choose_sparse(choices, model);
  } else if (model.attention.window > 0 && !latent) {
    choose_local(choices, job.plan, model);
  } else if (job.plan.mesh.cp == 1 && model.attention.causal && model.attention.window == 0 &&
             !model.parallel_branches && choices.one_in(10)) {
    model.mixer_pattern = "NX";
  }
  if (model.experts.routed > 0 && choices.one_in(8)) model.experts.latent = 64;
  if (model.experts.routed > 0 && model.experts.load.empty() && choices.one_in(8)) {
    model.experts.zero = model.experts.routed;
    if (model.experts.per_token % 2 != 0) model.experts.zero = 0;
  }
}

void choose_late_layers(Choices& choices, RandomJob& job) {
  ModelSpec& model = job.model;
  const ParallelPlan& plan = job.plan;
  const bool is_plain = model.mixer_pattern.empty() && model.attention.causal &&
                        plan.mesh.cp == 1 && !plan.tensor.divides_width() &&
                        plan.batch.document_length == 0 && plan.cache.split == CacheSplit::kHeads;
  if (is_plain && choices.one_in(6)) choose_compressed(choices, plan, model);
  if (!plan.tensor.divides_width()) choose_streams(choices, model);
  if (choices.one_in(8)) choose_vision(choices, model);
}

}  // namespace stepsim
