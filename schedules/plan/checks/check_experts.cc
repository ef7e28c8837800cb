#include <string>
#include <utility>

#include "schedules/pipeline/published/published_schedule.h"
#include "schedules/plan/expert_places.h"
#include "schedules/plan/plan_rules.h"

namespace stepsim {

void check_experts(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  const ExpertSpec& experts = model.experts;
  const std::string dispatch(name_of(plan.experts.dispatch));
  if (experts.routed == 0) {
    for (const auto& [field, value] :
         {std::pair{"ep", plan.mesh.ep}, std::pair{"etp", plan.mesh.etp}}) {
      rules.require(value <= 1, field,
                    "is " + std::to_string(value) + ", but the model has no routed experts: 1");
    }
    for (const auto& [field, value] : {std::pair{"node_limit", plan.experts.node_limit},
                                       std::pair{"expert_node", plan.experts.expert_node}}) {
      rules.require(
          !value, field,
          "is " + std::to_string(value.value_or(0)) + ", but the model has no routed experts: 0");
    }
    rules.require(plan.experts.dispatch == Dispatch::kAllToAll, "dispatch",
                  "is " + dispatch + ", but the model has no routed experts: all_to_all");
    for (const auto& [field, value] :
         {std::pair{"overlap_expert_parallel", plan.overlap.expert_parallel},
          std::pair{"overlap_shared_experts", plan.pieces.overlap_shared_experts},
          std::pair{"mask_dispatch", plan.kernels.mask_dispatch}}) {
      rules.require(!value, field, "is true, but the model has no routed experts: false");
    }
    for (const auto& [field, type] : {std::pair{"dispatch_dtype", plan.precision.dispatch_type},
                                      std::pair{"combine_dtype", plan.precision.combine_type}}) {
      rules.require(!type, field,
                    "is " + std::string(type ? name_of(*type) : "") +
                        ", but the model has no routed experts: leave it out");
    }
    return;
  }
  rules.require(plan.experts.dispatch == Dispatch::kAllToAll || plan.mesh.ep != 1, "dispatch",
                "is " + dispatch + ", but with ep = 1 nothing is sent: all_to_all, or ep above 1");
  rules.require(plan.experts.dispatch != Dispatch::kAllToAll || !plan.experts.expert_node,
                "expert_node",
                "is " + std::to_string(plan.experts.expert_node.value_or(0)) +
                    ", but only dispatch = two_level knows nodes: 0, or two_level");
  rules.require(plan.experts.dispatch != Dispatch::kAllToAll || !plan.experts.node_limit,
                "node_limit",
                "is " + std::to_string(plan.experts.node_limit.value_or(0)) +
                    ", but a copy for each expert goes straight to it (dispatch = all_to_all): 0, "
                    "or dispatch = two_level");
  for (const auto& [field, value] :
       {std::pair{"overlap_expert_parallel", plan.overlap.expert_parallel},
        std::pair{"overlap_shared_experts", plan.pieces.overlap_shared_experts}}) {
    rules.require(!value || plan.mesh.ep > 1, field,
                  "is true, but with ep = 1 nothing is sent: false");
  }
  if (plan.pieces.overlap_shared_experts) {
    rules.require(experts.shared_intermediate > 0, "overlap_shared_experts",
                  "is true, but the model has no shared experts: false");
    rules.require(plan.mesh.tp <= 1, "overlap_shared_experts",
                  "is true with tp = " + std::to_string(plan.mesh.tp) +
                      ", whose own collectives stand around the shared experts: tp = 1");
    const bool fuses = plan.overlap.expert_parallel || published(plan.pipeline.schedule).fuses;
    rules.require(!fuses, "overlap_shared_experts",
                  "is true, but fused forwards and backwards run beside the all-to-alls already: "
                  "false");
  }
  if (plan.kernels.mask_dispatch) {
    rules.require(experts.capacity_factor > 0, "mask_dispatch",
                  "is true, but without model.experts.capacity_factor experts have no places: "
                  "false, or a capacity factor");
    rules.require(plan.experts.dispatch == Dispatch::kAllToAll, "mask_dispatch",
                  "is true with dispatch = " + dispatch + ": false, or all_to_all");
    rules.require(!plan.kernels.sort_copies, "mask_dispatch",
                  "is true, so copies arrive in their places: false, or sort_copies = false");
  }
  rules.divides("ep", plan.mesh.ep, "model's routed experts", experts.routed);
  rules.divides("etp", plan.mesh.etp, "width of an expert", experts.intermediate);
  rules.divides("tp", plan.mesh.tp, "width of the shared experts", experts.shared_intermediate);
  rules.require(plan.mesh.tp <= 1 || plan.tensor.sequence_parallel || plan.is_inference(),
                "sequence_parallel",
                "is false, but with experts and tp = " + std::to_string(plan.mesh.tp) +
                    " tensor ranks would all send the same tokens: true");
  if (plan.mesh.splits_ffn()) return;  // check_inference()
  if (plan.mesh.tp < 1 || plan.mesh.cp < 1 || plan.mesh.dp < 1 || plan.mesh.etp < 1) return;
  const std::int64_t ranks = plan.mesh.tp * plan.mesh.cp * plan.mesh.dp;
  rules.divides("etp", plan.mesh.etp, "ranks of a stage, tp x cp x dp", ranks);
  if (ranks % plan.mesh.etp == 0) {
    rules.divides("ep", plan.mesh.ep, "ranks of a stage, tp x cp x dp / etp",
                  ranks / plan.mesh.etp);
  }
}

void check_expert_places(const ParallelPlan& plan, const ModelSpec& model, const Places& places,
                         Rules& rules) {
  if (plan.mesh.splits_ffn())
    return;  // tokens go straight to the experts' chips: check_inference()
  // A load that no routing can have is reported with the model.
  if (!routes_by_matrix(model, plan.mesh, plan.experts) || !check(model).empty()) return;
  std::int64_t node = plan.mesh.ep;
  if (plan.experts.dispatch != Dispatch::kAllToAll) {
    node = ranks_of_expert_node(plan.mesh, places);
    rules.require(node > 0, "dispatch",
                  "is " + std::string(name_of(plan.experts.dispatch)) + ", but the " +
                      std::to_string(plan.mesh.ep) +
                      " ranks of ep do not stand in nodes, as many in each and in the same places "
                      "of it: all_to_all, or another order or map");
    if (node == 0) return;
    rules.require(!plan.experts.expert_node || plan.experts.expert_node == node, "expert_node",
                  "is " + std::to_string(plan.experts.expert_node.value_or(0)) +
                      ", but in each node of the cluster " + std::to_string(node) +
                      " neighbouring ranks of ep stand: " + std::to_string(node) +
                      ", or 0 for as many as there are");
  }
  ExpertRouting routing = expert_routing(model, plan.mesh, plan.experts, node);
  for (const Problem& problem : check(routing)) {
    rules.require(false, problem.field, problem.message);
  }
}

}  // namespace stepsim
