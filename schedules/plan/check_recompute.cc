#include <algorithm>
#include <string>
#include <vector>

#include "schedules/plan/plan_rules.h"

namespace stepsim {
namespace {

// Modules that the model's blocks have.
std::vector<RecomputeModule> modules_of(const ModelSpec& model) {
  using enum RecomputeModule;
  if (model.kind == ModelKind::kMlpStack) return {kMlp};
  const ExpertSpec& experts = model.experts;
  std::vector<RecomputeModule> modules = {kAttention, kNorm, kActivation};
  if (model.latent.kv_rank > 0) modules.push_back(kLatentUp);
  const bool has_mlp = experts.routed == 0 || experts.first_dense > 0 || experts.every > 1;
  if (has_mlp) modules.push_back(kMlp);
  if (experts.routed > 0 && experts.shared_intermediate > 0) modules.push_back(kSharedExperts);
  if (experts.routed > 0) modules.push_back(kExperts);
  return modules;
}

void check_recompute_modules(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  rules.require(plan.recompute != Recompute::kAlternate || !model.qk_norm, "recompute",
                "is alternate, which can't be simulated yet for a model that normalises q and k: "
                "none, selective, matmuls or full");
  rules.require(plan.recompute != Recompute::kAlternate || !plan.overlap_shared_experts,
                "recompute",
                "is alternate, which can't be simulated yet with overlap_shared_experts: none, "
                "selective, matmuls or full");
  const std::vector<RecomputeModule> there = modules_of(model);
  std::string names;
  for (const RecomputeModule module : there) {
    names += (names.empty() ? "" : ", ") + std::string(name_of(module));
  }
  const auto has = [](const std::vector<RecomputeModule>& modules, RecomputeModule module) {
    return std::ranges::count(modules, module) > 0;
  };
  if (plan.recompute == Recompute::kSelective) {
    for (const RecomputeModule module : plan.recompute_modules) {
      rules.require(has(there, module), "recompute_modules",
                    "has " + std::string(name_of(module)) +
                        ", of which the model's blocks have none: " + names);
    }
    return;
  }
  rules.require(plan.recompute_modules == ParallelPlan{}.recompute_modules, "recompute_modules",
                "is given, but recompute is " + std::string(name_of(plan.recompute)) +
                    ": only selective takes modules");
}

}  // namespace

void check_recompute(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  rules.at_least("recompute_block", 1, plan.recompute_block);
  rules.at_least("recompute_layers", 0, plan.recompute_layers);
  rules.require(plan.recompute_block <= 1 || plan.recompute == Recompute::kFull, "recompute_block",
                "is " + std::to_string(plan.recompute_block) + ", but recompute is " +
                    std::string(name_of(plan.recompute)) + ": only full keeps inputs of blocks");
  rules.require(plan.recompute_layers == 0 || plan.recompute != Recompute::kNone,
                "recompute_layers",
                "is " + std::to_string(plan.recompute_layers) +
                    ", but recompute is none: selective, matmuls or full");
  check_recompute_modules(plan, model, rules);
}

}  // namespace stepsim
