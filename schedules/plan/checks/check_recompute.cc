#include <algorithm>
#include <string>
#include <vector>

#include "schedules/plan/plan_rules.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

// Returns the modules that the model's blocks have.
std::vector<RecomputeModule> modules_of(const ModelSpec& model) {
  using enum RecomputeModule;
  if (model.kind == ModelKind::kMlpStack) return {kMlp};
  const ExpertSpec& experts = model.experts;
  std::vector<RecomputeModule> modules = {kAttention, kNorm, kActivation};
  if (model.latent.kv_rank > 0 || model.compressed.output_groups > 0) modules.push_back(kLatentUp);
  if (model.hyper.streams > 0) modules.push_back(kHyper);
  const bool has_mlp = model.mlp_pattern.empty()
                           ? experts.routed == 0 || experts.first_dense > 0 || experts.every > 1
                           : model.mlp_pattern.find('D') != std::string::npos;
  if (has_mlp) modules.push_back(kMlp);
  if (experts.routed > 0 && experts.shared_intermediate > 0) modules.push_back(kSharedExperts);
  if (experts.routed > 0) modules.push_back(kExperts);
  return modules;
}

void check_recompute_modules(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  const std::vector<RecomputeModule> there = modules_of(model);
  std::string names;
  for (const RecomputeModule module : there) {
    names += (names.empty() ? "" : ", ") + std::string(name_of(module));
  }
  const auto has = [](const std::vector<RecomputeModule>& modules, RecomputeModule module) {
    return std::ranges::count(modules, module) > 0;
  };
  if (plan.recomputing.kind == Recompute::kSelective) {
    for (const RecomputeModule module : plan.recomputing.modules) {
      rules.require(has(there, module), "recompute_modules",
                    "has " + std::string(name_of(module)) +
                        ", of which the model's blocks have none: " + names);
    }
    return;
  }
  rules.require(plan.recomputing.modules == ParallelPlan{}.recomputing.modules, "recompute_modules",
                "is given, but recompute is " + std::string(name_of(plan.recomputing.kind)) +
                    ": only selective takes modules");
}

void check_recompute_keep(const ParallelPlan& plan, Rules& rules) {
  const bool keeps = plan.recomputing.kind == Recompute::kAllBut;
  rules.require(keeps || plan.recomputing.keep.empty(), "recompute_keep",
                "is given, but recompute is " + std::string(name_of(plan.recomputing.kind)) +
                    ": only all_but takes results to keep");
  rules.require(!keeps || !plan.recomputing.keep.empty(), "recompute_keep",
                "is not given, but recompute is all_but: some of qkv, attention, out, up, down");
}

// Returns the most consecutive blocks of a stage that run again.
std::int64_t most_in_a_row(const ParallelPlan& plan, const ModelSpec& model) {
  std::int64_t most = 0;
  for (const std::int64_t layers : plan.pipeline.layout) most = std::max(most, layers);
  if (plan.pipeline.layout.empty())
    most = model.layers / std::max<std::int64_t>(1, stages_of(plan));
  return std::min(most, plan.recomputing.layers.value_or(most));
}

// Checks groups of blocks that keep one input.
void check_groups(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (plan.recomputing.block <= 1) return;
  const std::string is = "is " + std::to_string(plan.recomputing.block);
  rules.require(plan.recomputing.kind == Recompute::kFull, "recompute_block",
                is + ", but recompute is " + std::string(name_of(plan.recomputing.kind)) +
                    ": only full keeps inputs of blocks");
  if (plan.recomputing.kind != Recompute::kFull || plan.mesh.pp < 1) return;
  rules.require(most_in_a_row(plan, model) > 1, "recompute_block",
                is + ", but no stage has two blocks in a row that run again: 1");
  rules.require(plan.mesh.pp > 1 || !splits_all_backwards(plan.pipeline), "recompute_block",
                is + ", but on one stage of " + std::string(schedule_text(plan.pipeline)) +
                    " all blocks have run again before the weight gradients free the first: 1, or "
                    "a schedule with whole backwards");
}

}  // namespace

void check_recompute(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  rules.require(
      !keeps_every_second_matmul(plan.recomputing.kind) || model.shared.blocks == 0 ||
          plan.mesh.tp <= 1,
      "recompute",
      "is " + std::string(name_of(plan.recomputing.kind)) +
          ", which is not modelled for blocks of shared weights with tp above 1: matmuls, full or "
          "none");
  check_groups(plan, model, rules);
  rules.require(!plan.recomputing.layers || plan.recomputing.kind != Recompute::kNone,
                "recompute_layers",
                "is " + std::to_string(plan.recomputing.layers.value_or(0)) +
                    ", but recompute is none: selective, matmuls, alternate, alternate_matmuls, "
                    "all_but or full");
  check_recompute_modules(plan, model, rules);
  check_recompute_keep(plan, rules);
}

}  // namespace stepsim
