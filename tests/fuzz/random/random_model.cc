#include <algorithm>
#include <numeric>

#include "schedules/plan/plan_schedule.h"
#include "tests/fuzz/random/random_plan.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostLayers = 16;

// Sets layers for each stage, as many for each or by a layout.
void choose_layers(Choices& choices, RandomJob& job) {
  ParallelPlan& plan = job.plan;
  const std::int64_t stages = stages_of(plan);
  if (stages > 1 && choices.one_in(4)) {
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      const bool is_end = stage == 0 || stage == stages - 1;
      plan.pipeline.layout.push_back(choices.between(is_end && choices.one_in(3) ? 0 : 1, 2));
    }
    job.model.layers =
        std::accumulate(plan.pipeline.layout.begin(), plan.pipeline.layout.end(), std::int64_t{0});
    return;
  }
  job.model.layers =
      stages * choices.between(1, std::max<std::int64_t>(1, kMostLayers / stages / 2));
}

// Sets how many ranks divide the experts of a layer.
void choose_expert_mesh(Choices& choices, ParallelPlan& plan) {
  const std::int64_t ranks = plan.mesh.stage_ranks();
  if (choices.one_in(4)) plan.mesh.etp = choices.divisor_of(ranks);
  plan.mesh.ep =
      choices.one_in(2) ? choices.divisor_of(ranks / plan.mesh.etp) : ranks / plan.mesh.etp;
}

// Numbers less than 1 / per_token of their sum, so that a token goes to an expert once.
void choose_load(Choices& choices, ExpertSpec& experts) {
  if (experts.routed < 3 * experts.per_token || !choices.one_in(3)) return;
  for (std::int64_t expert = 0; expert < experts.routed; ++expert) {
    experts.load.push_back(static_cast<double>(choices.between(2, 3)));
  }
}

void choose_experts(Choices& choices, RandomJob& job) {
  choose_expert_mesh(choices, job.plan);
  const ParallelPlan& plan = job.plan;
  ExpertSpec& experts = job.model.experts;
  experts.routed = plan.mesh.ep * choices.pick({2, 1, 4, 3});
  experts.per_token = choices.between(1, std::min<std::int64_t>(experts.routed, 6));
  experts.intermediate = plan.mesh.etp * choices.pick({64, 32, 48, 256});
  if (choices.one_in(3)) experts.shared_intermediate = plan.mesh.tp * choices.pick({64, 96});
  if (choices.one_in(4)) experts.first_dense = choices.between(0, 2);
  if (choices.one_in(5)) experts.every = 2;
  experts.router_bias = choices.one_in(4);
  experts.shared_gate = experts.shared_intermediate > 0 && choices.one_in(3);
  if (choices.one_in(5)) experts.capacity_factor = choices.pick({1.25, 1.0, 2.0});
  choose_load(choices, experts);
}

void choose_latent(Choices& choices, ModelSpec& model) {
  model.latent = {.q_rank = choices.pick({0, 96}),
                  .kv_rank = choices.pick({64, 32}),
                  .nope_dim = model.attention.head_dim,
                  .rope_dim = choices.pick({16, 32}),
                  .v_dim = model.attention.head_dim};
  model.attention.head_dim = model.latent.nope_dim + model.latent.rope_dim;
  model.attention.kv_heads = model.attention.heads;
}

// Grouped queries: fewer key-value heads than heads, which tensor ranks divide or share.
void choose_groups(Choices& choices, const ParallelPlan& plan, ModelSpec& model) {
  model.attention.kv_heads = choices.divisor_of(model.attention.heads);
  if (plan.mesh.tp % model.attention.kv_heads != 0 && model.attention.kv_heads % plan.mesh.tp != 0)
    model.attention.kv_heads = model.attention.heads;
}

void choose_window(Choices& choices, ModelSpec& model) {
  model.attention.window = choices.pick({16, 1, 100});
  if (choices.one_in(2)) model.mixer_pattern = choices.pick({"LG", "LLG", "G"});
}

void choose_attention(Choices& choices, RandomJob& job) {
  ModelSpec& model = job.model;
  const std::int64_t of_rank = job.plan.mesh.cp * choices.pick({1, 2, 1, 3});
  model.attention.heads = job.plan.mesh.tp * of_rank;
  model.attention.kv_heads = model.attention.heads;
  model.attention.head_dim = choices.pick({32, 64, 16, 128});
  if (choices.one_in(5)) {
    choose_latent(choices, model);
  } else if (choices.one_in(2)) {
    choose_groups(choices, job.plan, model);
  }
  model.attention.causal = !choices.one_in(5);
  if (model.attention.causal && choices.one_in(5)) choose_window(choices, model);
  model.attention.qk_norm = model.latent.kv_rank == 0 && choices.one_in(5);
  model.attention.sinks = choices.one_in(8);
}

void choose_blocks(Choices& choices, ModelSpec& model) {
  model.mlp.gated = !choices.one_in(3);
  model.embedding.tied = choices.one_in(4);
  model.attention.bias = choices.one_in(5);
  model.attention.qkv_bias = choices.one_in(6);
  model.mlp.bias = choices.one_in(6);
  if (choices.one_in(4)) model.norms.kind = NormKind::kLayer;
  model.norms.post = choices.one_in(6);
  model.parallel_branches = model.experts.routed == 0 && !model.norms.post && choices.one_in(8);
  model.norms.embedding = choices.one_in(8);
  model.dropout = choices.one_in(8);
  if (choices.one_in(10)) model.prediction.modules = 1;
}

void choose_transformer(Choices& choices, RandomJob& job) {
  ModelSpec& model = job.model;
  choose_attention(choices, job);
  if (choices.one_in(3)) choose_experts(choices, job);
  choose_blocks(choices, model);
  choose_mixers(choices, job);
  model.embedding.vocabulary = choices.pick({1000, 128, 32000, 101});
  if (choices.one_in(6)) model.embedding.learned_positions = job.plan.batch.sequence;
}

}  // namespace

void choose_model(Choices& choices, RandomJob& job) {
  ParallelPlan& plan = job.plan;
  ModelSpec& model = job.model;
  model.name = "random";
  choose_layers(choices, job);
  plan.batch.sequence = 2 * plan.mesh.cp * plan.mesh.tp * choices.pick({16, 8, 64, 5});
  model.hidden = plan.mesh.tp * choices.pick({64, 128, 32, 80});
  model.mlp.width = plan.mesh.tp * choices.pick({128, 256, 96});
  if (choices.one_in(20)) {
    model.kind = ModelKind::kMlpStack;
  } else {
    choose_transformer(choices, job);
  }
}

}  // namespace stepsim
