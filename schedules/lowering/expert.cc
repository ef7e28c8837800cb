#include "schedules/lowering/expert.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stepsim {
namespace {

bool is_two_level(const ParallelPlan& plan) {
  return plan.dispatch == Dispatch::kTwoLevel && plan.ep > plan.expert_node;
}

class Travel {
 public:
  Travel(const TokenRouting& routing, const ParallelPlan& plan) : routing_(routing), plan_(plan) {}

  // To the experts, with copies of so many bytes; and back.
  std::vector<LayerStep> there(Bytes copy) const {
    std::vector<LayerStep> steps;
    if (is_two_level(plan_)) {
      steps.push_back(step(Lane::kExpertsAcross, CollectiveOp::kAllToAll,
                           tokens_across_nodes(routing_, plan_) * copy));
    }
    const Bytes sent = routing_.tokens * routing_.copies * copy;
    if (plan_.ep > 1) steps.push_back(step(Lane::kExperts, CollectiveOp::kAllToAll, sent));
    if (plan_.etp > 1) {
      steps.push_back(step(Lane::kExpertTensor, CollectiveOp::kAllGather, plan_.etp * sent));
    }
    return steps;
  }
  std::vector<LayerStep> back(Bytes copy) const {
    std::vector<LayerStep> steps = there(copy);
    std::ranges::reverse(steps);
    for (LayerStep& one : steps) {
      if (one.collective == CollectiveOp::kAllGather) one.collective = CollectiveOp::kReduceScatter;
    }
    return steps;
  }

 private:
  LayerStep step(Lane lane, CollectiveOp op, Bytes bytes) const {
    return exchange(lane, op, bytes, plan_.communicated());
  }
  const TokenRouting& routing_;
  const ParallelPlan& plan_;
};

}  // namespace

LayerStep exchange(Lane lane, CollectiveOp op, Bytes bytes, DataType type) {
  LayerStep step;
  step.kind = LayerStep::Kind::kCollective;
  step.lane = lane;
  step.collective = op;
  step.bytes = bytes;
  step.type = type;
  return step;
}

std::int64_t tokens_across_nodes(const TokenRouting& routing, const ParallelPlan& plan) {
  const std::int64_t nodes = plan.ep / plan.expert_node;
  const auto most =
      static_cast<double>(plan.node_limit == 0 ? nodes : std::min(nodes, plan.node_limit));
  const double distinct = most * (1 - std::pow(1 - 1 / most, static_cast<double>(routing.copies)));
  // As many to each node.
  const double to_a_node =
      static_cast<double>(routing.tokens) * distinct / static_cast<double>(nodes);
  return nodes * static_cast<std::int64_t>(std::llround(to_a_node));
}

std::vector<OpExchange> expert_exchanges(const Layer& block, const ParallelPlan& plan) {
  if (!block.routing || plan.ep * plan.etp == 1) return {};
  const Travel travel(*block.routing, plan);
  const auto is_expert = [](const LayerOp& op) { return op.region == Region::kExpert; };
  const auto first = std::ranges::find_if(block.ops, is_expert);
  const auto end = std::find_if_not(first, block.ops.end(), is_expert);
  OpExchange dispatch{.op = static_cast<std::size_t>(first - block.ops.begin())};
  dispatch.before_forward = travel.there(block.routing->dispatched);
  dispatch.after_backward = travel.back(block.routing->dispatched);
  OpExchange combine{.op = static_cast<std::size_t>(end - block.ops.begin()) - 1};
  combine.after_forward = travel.back(block.routing->combined);
  combine.before_backward = travel.there(block.routing->combined);
  return {std::move(dispatch), std::move(combine)};
}

std::int64_t expert_bytes(const TokenRouting& routing, const ParallelPlan& plan,
                          const ExpertsAgain& again) {
  const std::int64_t ranks = plan.tp * plan.cp * plan.dp;  // of a stage
  const std::int64_t copies = routing.tokens * routing.copies;
  const std::int64_t inside = is_two_level(plan) ? plan.expert_node : plan.ep;
  std::int64_t units = ranks / inside * (inside - 1) * copies;  // of copies that leave a rank
  if (is_two_level(plan)) {
    const std::int64_t nodes = plan.ep / plan.expert_node;
    units += ranks / nodes * (nodes - 1) * tokens_across_nodes(routing, plan);
  }
  units += ranks / plan.etp * (plan.etp - 1) * plan.etp * copies;
  return units * (routing.dispatched.value() * (again.dispatch ? 3 : 2) +
                  routing.combined.value() * (again.combine ? 3 : 2));
}

}  // namespace stepsim
