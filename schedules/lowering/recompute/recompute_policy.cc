#include <algorithm>
#include <cstdint>
#include <optional>

#include "schedules/lowering/recompute/recompute_choice.h"

namespace stepsim {
namespace {

bool moves_tokens(const LayerOp& op) {
  return op.name.role() == OpRole::kPermute || op.name.role() == OpRole::kUnpermute;
}

// Returns whether and how the op belongs to a module that the plan recomputes.
RecomputePolicy policy_of(RecomputeModule module, const LayerOp& op) {
  const OpRole role = op.name.role();
  const bool is_shared = op.name.module() == OpModule::kSharedExperts;
  const auto if_in = [](bool belongs, RecomputePolicy policy) {
    return belongs ? policy : RecomputePolicy::kKeep;
  };
  switch (module) {
    case RecomputeModule::kAttention:
      return if_in(role == OpRole::kAttention, RecomputePolicy::kInside);
    case RecomputeModule::kNorm:
      return if_in(role == OpRole::kNorm, RecomputePolicy::kResult);
    case RecomputeModule::kActivation:
      return if_in(role == OpRole::kActivation, RecomputePolicy::kResult);
    case RecomputeModule::kLatentUp:
      return if_in(op.name.module() == OpModule::kLatentUp, RecomputePolicy::kResult);
    case RecomputeModule::kHyper:
      return if_in(op.name.module() == OpModule::kHyper, RecomputePolicy::kResult);
    case RecomputeModule::kMlp:
      return if_in(op.name.module() == OpModule::kMlp, RecomputePolicy::kModule);
    case RecomputeModule::kSharedExperts:
      return if_in(is_shared, RecomputePolicy::kModule);
    case RecomputeModule::kExperts:
      return if_in(
          op.region == Region::kExpert || is_shared || role == OpRole::kRouter || moves_tokens(op),
          RecomputePolicy::kModule);
  }
  return RecomputePolicy::kKeep;
}

// Returns the name of a result that may be kept; nullopt: it always runs again.
std::optional<KeptResult> result_of(const LayerOp& op) {
  switch (op.name.role()) {
    case OpRole::kQkv:
      return KeptResult::kQkv;
    case OpRole::kAttention:
      return KeptResult::kAttention;
    case OpRole::kOut:
      return KeptResult::kOut;
    case OpRole::kUp:
      return KeptResult::kUp;
    case OpRole::kDown:
      return KeptResult::kDown;
    default:
      return std::nullopt;
  }
}

bool keeps(const RecomputePlan& plan, const LayerOp& op) {
  const std::optional<KeptResult> result = result_of(op);
  return result && std::ranges::count(plan.keep, *result) > 0;
}

}  // namespace

bool is_projection(const LayerOp& op) {
  return weights_matmul(op) != nullptr;
}

RecomputePolicy policy_of(const RecomputePlan& plan, const Ranks& mesh, const LayerOp& op) {
  // These ops may have no kernels but stand between others of their module.
  if (op.forward.empty() && !moves_tokens(op)) {
    return RecomputePolicy::kKeep;
  }
  if (plan.kind == Recompute::kMatmuls) {
    return is_projection(op) || moves_tokens(op) ? RecomputePolicy::kKeep
                                                 : RecomputePolicy::kResult;
  }
  if (keeps_every_second_matmul(plan.kind)) {
    // Grouped matmuls are not among the results that torchtitan keeps.
    const bool keeps_attention = plan.kind == Recompute::kAlternate;
    const bool stays = (is_projection(op) && op.region != Region::kExpert) ||
                       (keeps_attention && op.name.role() == OpRole::kAttention) ||
                       (mesh.ep > 1 && moves_tokens(op));
    return stays ? RecomputePolicy::kKeep : RecomputePolicy::kResult;
  }
  if (plan.kind == Recompute::kAllBut) {
    return keeps(plan, op) || moves_tokens(op) ? RecomputePolicy::kKeep : RecomputePolicy::kResult;
  }
  if (plan.kind != Recompute::kSelective) return RecomputePolicy::kKeep;
  RecomputePolicy most = RecomputePolicy::kKeep;
  for (const RecomputeModule module : plan.modules) {
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
