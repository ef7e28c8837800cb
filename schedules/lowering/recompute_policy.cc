#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "schedules/lowering/recompute_choice.h"

namespace stepsim {
namespace {

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::count(names, name) > 0;
}

// Returns whether and how the op belongs to a module that the plan recomputes.
RecomputePolicy policy_of(RecomputeModule module, const LayerOp& op) {
  const std::string_view name = op.name;
  switch (module) {
    case RecomputeModule::kAttention:
      return name == "attention" ? RecomputePolicy::kInside : RecomputePolicy::kKeep;
    case RecomputeModule::kNorm:
      return name.ends_with("norm") ? RecomputePolicy::kResult : RecomputePolicy::kKeep;
    case RecomputeModule::kActivation:
      return name.ends_with("_activation") ? RecomputePolicy::kResult : RecomputePolicy::kKeep;
    case RecomputeModule::kLatentUp:
      return one_of(name, {"query_up_projection", "key_value_up_projection", "rope"})
                 ? RecomputePolicy::kResult
                 : RecomputePolicy::kKeep;
    case RecomputeModule::kMlp:
      return one_of(name,
                    {"gate_up_projection", "up_projection", "mlp_activation", "down_projection"})
                 ? RecomputePolicy::kModule
                 : RecomputePolicy::kKeep;
    case RecomputeModule::kSharedExperts:
      return name.starts_with("shared_") ? RecomputePolicy::kModule : RecomputePolicy::kKeep;
    case RecomputeModule::kExperts:
      return op.region == Region::kExpert || name.starts_with("shared_") ||
                     one_of(name, {"router", "permute", "unpermute"})
                 ? RecomputePolicy::kModule
                 : RecomputePolicy::kKeep;
  }
  return RecomputePolicy::kKeep;
}

// Returns the name of a result that may be kept; nullopt: it always runs again.
std::optional<KeptResult> result_of(const LayerOp& op) {
  const std::string_view name = op.name;
  if (one_of(name, {"qkv_projection", "latent_projection", "query_up_projection",
                    "key_value_up_projection"})) {
    return KeptResult::kQkv;
  }
  if (name == "attention") return KeptResult::kAttention;
  if (name == "out_projection") return KeptResult::kOut;
  if (name.ends_with("up_projection")) return KeptResult::kUp;
  if (name.ends_with("down_projection")) return KeptResult::kDown;
  return std::nullopt;
}

bool keeps(const ParallelPlan& plan, const LayerOp& op) {
  const std::optional<KeptResult> result = result_of(op);
  return result && std::ranges::count(plan.recomputing.keep, *result) > 0;
}

}  // namespace

bool is_projection(const LayerOp& op) {
  return weights_matmul(op) != nullptr;
}

RecomputePolicy policy_of(const ParallelPlan& plan, const LayerOp& op) {
  // These ops may have no kernels but stand between others of their module.
  if (op.forward.empty() && !one_of(op.name, {"permute", "unpermute"})) {
    return RecomputePolicy::kKeep;
  }
  if (plan.recomputing.kind == Recompute::kMatmuls) {
    return is_projection(op) || one_of(op.name, {"permute", "unpermute"})
               ? RecomputePolicy::kKeep
               : RecomputePolicy::kResult;
  }
  if (keeps_every_second_matmul(plan.recomputing.kind)) {
    // Grouped matmuls are not among the results that torchtitan keeps.
    const bool keeps_attention = plan.recomputing.kind == Recompute::kAlternate;
    const bool stays = (is_projection(op) && op.region != Region::kExpert) ||
                       (keeps_attention && op.name == "attention") ||
                       (plan.mesh.ep > 1 && one_of(op.name, {"permute", "unpermute"}));
    return stays ? RecomputePolicy::kKeep : RecomputePolicy::kResult;
  }
  if (plan.recomputing.kind == Recompute::kAllBut) {
    return keeps(plan, op) || one_of(op.name, {"permute", "unpermute"}) ? RecomputePolicy::kKeep
                                                                        : RecomputePolicy::kResult;
  }
  if (plan.recomputing.kind != Recompute::kSelective) return RecomputePolicy::kKeep;
  RecomputePolicy most = RecomputePolicy::kKeep;
  for (const RecomputeModule module : plan.recomputing.modules) {
    most = std::max(most, policy_of(module, op));
  }
  return most;
}

std::vector<DroppedColumns> dropped_alternately(const Layer& block) {
  std::vector<DroppedColumns> dropped(block.ops.size());
  std::int64_t matmuls = 0;
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    const LayerOp& op = block.ops[i];
    if (!is_projection(op) || op.region == Region::kExpert) continue;
    const std::vector<std::int64_t> columns =
        op.columns.empty() ? std::vector<std::int64_t>{1} : op.columns;
    dropped[i].of = 0;
    for (const std::int64_t matrix : columns) {
      dropped[i].of += matrix;
      if (++matmuls % 2 == 0) dropped[i].columns += matrix;
    }
  }
  return dropped;
}

}  // namespace stepsim
