#include "schedules/lowering/steps/expert.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "schedules/plan/expert_places.h"

namespace stepsim {
namespace {

constexpr std::uint32_t kThere = 0;  // indices into ExpertExchange::matrices
constexpr std::uint32_t kBack = 1;

// Returns the bytes in whole elements of a type: the mean traffic of an uneven load ends anywhere.
Bytes whole(Bytes bytes, DataType type) {
  const std::int64_t element = size_of(type).value();
  return Bytes((bytes.value() + element - 1) / element * element);
}

// Returns the tokens that arrive at a member or leave it, including those that stay there.
Bytes received(const ByteMatrix& matrix, std::uint32_t member) {
  Bytes sum;
  for (std::uint32_t from = 0; from < matrix.members; ++from) sum += matrix.between(from, member);
  return sum;
}
Bytes sent(const ByteMatrix& matrix, std::uint32_t member) {
  Bytes sum;
  for (std::uint32_t to = 0; to < matrix.members; ++to) sum += matrix.between(member, to);
  return sum;
}

class Travel {
 public:
  // `quick`: a library may take its low-latency kernels.
  Travel(const TokenRouting& routing, const Ranks& mesh, const Precision& precision, bool quick,
         const ExpertExchange& exchange, std::int64_t expert_rank)
      : routing_(routing),
        mesh_(mesh),
        precision_(precision),
        quick_(quick),
        exchange_(exchange),
        expert_rank_(static_cast<std::uint32_t>(expert_rank)) {}

  std::vector<LayerStep> there() const {
    std::vector<LayerStep> steps;
    if (mesh_.ep > 1) steps.push_back(all_to_all(kThere));
    if (mesh_.etp > 1) {
      steps.push_back(stepsim::exchange(
          Lane::kExpertTensor, CollectiveOp::kAllGather,
          mesh_.etp * whole(at_experts(kThere), precision_.dispatched()), precision_.dispatched()));
    }
    return steps;
  }
  std::vector<LayerStep> back() const {
    std::vector<LayerStep> steps;
    if (mesh_.etp > 1) {
      steps.push_back(stepsim::exchange(Lane::kExpertTensor, CollectiveOp::kReduceScatter,
                                        mesh_.etp * whole(at_experts(kBack), precision_.combined()),
                                        precision_.combined()));
    }
    if (mesh_.ep > 1) steps.push_back(all_to_all(kBack));
    return steps;
  }

 private:
  Bytes even(std::uint32_t way) const {
    return routing_.tokens * routing_.copies *
           (way == kThere ? routing_.dispatched : routing_.combined);
  }
  // Returns the bytes of one of the ranks that share the experts.
  Bytes at_experts(std::uint32_t way) const {
    if (exchange_.matrices.empty()) return even(way);
    return way == kThere ? received(exchange_.matrices[kThere], expert_rank_)
                         : sent(exchange_.matrices[kBack], expert_rank_);
  }
  LayerStep all_to_all(std::uint32_t way) const {
    const DataType type = way == kThere ? precision_.dispatched() : precision_.combined();
    LayerStep step = stepsim::exchange(Lane::kExperts, CollectiveOp::kAllToAll, even(way), type);
    if (quick_) {
      step.experts =
          ExpertHalf{.combines = way == kBack,
                     .tokens = routing_.tokens,
                     .top_k = routing_.copies,
                     .experts = routing_.experts,
                     .token_bytes = way == kThere ? routing_.dispatched : routing_.combined};
    }
    if (exchange_.matrices.empty()) return step;
    step.bytes = largest_buffer(exchange_.matrices[way]);
    step.byte_matrix = exchange_.first + way;
    step.algorithm = way == kThere ? exchange_.there : exchange_.back;
    return step;
  }

  const TokenRouting& routing_;
  const Ranks& mesh_;
  const Precision& precision_;
  bool quick_;
  const ExpertExchange& exchange_;
  std::uint32_t expert_rank_;
};

// Returns all bytes that members send. They go straight to each other, or over the rail once for a
// whole node and from the member there to the others.
std::int64_t sent_in_all(const ByteMatrix& matrix) {
  const bool shared = matrix.sharing != NodeSharing::kNone;
  const std::uint32_t per_node = shared ? matrix.members / matrix.nodes() : matrix.members;
  Bytes sum;
  for (std::uint32_t from = 0; from < matrix.members; ++from) {
    for (std::uint32_t to = 0; to < matrix.members; ++to) {
      if (from % per_node != to % per_node) sum += matrix.between(from, to);
    }
    for (std::uint32_t node = 0; shared && node < matrix.nodes(); ++node) {
      if (node != matrix.node_of[from]) sum += matrix.between_node(from, node);
    }
  }
  return sum.value();
}

struct EachWay {
  std::int64_t there = 0;
  std::int64_t back = 0;
};

// Returns the bytes that one stage's ranks send in one pass.
EachWay bytes_once(const TokenRouting& routing, const Ranks& mesh, const Precision& precision,
                   const ExpertExchange& exchange) {
  const std::int64_t ranks = mesh.stage_ranks();
  if (exchange.matrices.empty()) {
    const std::int64_t copies = routing.tokens * routing.copies;
    const std::int64_t units =
        ranks / mesh.ep * (mesh.ep - 1) * copies + ranks * (mesh.etp - 1) * copies;
    return {units * routing.dispatched.value(), units * routing.combined.value()};
  }
  const auto of = [&](const ByteMatrix& matrix, const auto& at_experts, DataType type) {
    std::int64_t gathered = 0;  // bytes gathered by ranks that share experts
    for (std::uint32_t member = 0; member < matrix.members; ++member) {
      gathered += whole(at_experts(matrix, member), type).value();
    }
    return ranks / mesh.ep * sent_in_all(matrix) +
           ranks / (mesh.ep * mesh.etp) * mesh.etp * (mesh.etp - 1) * gathered;
  };
  return {of(exchange.matrices[kThere], received, precision.dispatched()),
          of(exchange.matrices[kBack], sent, precision.combined())};
}

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

ExpertExchange expert_exchange(const ModelSpec& model, const Ranks& mesh,
                               const ExpertPlacement& experts, const TokenRouting& routing,
                               const Places& places) {
  if (!routes_by_matrix(model, mesh, experts)) return {};
  const bool two_level = experts.dispatch == Dispatch::kTwoLevel;
  ExpertRouting request = expert_routing(model, mesh, experts,
                                         two_level ? ranks_of_expert_node(mesh, places) : mesh.ep);
  request.tokens = routing.tokens;
  ExpertExchange exchange;
  request.token_bytes = routing.dispatched;
  exchange.matrices.push_back(route_tokens(request).dispatch);
  request.token_bytes = routing.combined;
  exchange.matrices.push_back(route_tokens(request).combine);
  if (request.copies == TokenCopies::kPerNode) {
    exchange.there = AlgorithmChoice::kNodeForwarding;
    exchange.back = AlgorithmChoice::kPxn;
  }
  return exchange;
}

std::int64_t arriving_tokens(const TokenRouting& routing, const Ranks& mesh,
                             const ExpertExchange& exchange, std::int64_t expert_rank) {
  assert(!exchange.matrices.empty());
  const Bytes arrived =
      received(exchange.matrices[kThere], static_cast<std::uint32_t>(expert_rank));
  return mesh.etp * (arrived.value() / routing.dispatched.value());
}

bool is_shared_expert(const LayerOp& op) {
  return op.name.module() == OpModule::kSharedExperts;
}

Layer shared_experts_beside_dispatch(Layer block) {
  // Ops read the op before them unless they say otherwise. Moved ops and the ops behind them need
  // new reads.
  for (std::size_t i = 1; i < block.ops.size(); ++i) {
    if (block.ops[i].reads.empty()) block.ops[i].reads = {block.ops[i - 1].name};
  }
  const auto first = std::ranges::find(block.ops, Region::kExpert, &LayerOp::region);
  std::stable_partition(block.ops.begin(), first,
                        [](const LayerOp& op) { return !is_shared_expert(op); });
  return block;
}

std::vector<OpExchange> expert_exchanges(const Layer& block, const ParallelPlan& plan,
                                         const ExpertExchange& exchange, std::int64_t expert_rank) {
  if (!block.routing || plan.mesh.ep * plan.mesh.etp == 1) return {};
  const bool quick = plan.is_inference() && plan.experts.dispatch == Dispatch::kAllToAll;
  const Travel travel(*block.routing, plan.mesh, plan.precision, quick, exchange, expert_rank);
  const auto is_expert = [](const LayerOp& op) { return op.region == Region::kExpert; };
  const auto first = std::ranges::find_if(block.ops, is_expert);
  const auto end = std::find_if_not(first, block.ops.end(), is_expert);
  OpExchange dispatch{.op = static_cast<std::size_t>(first - block.ops.begin())};
  dispatch.before_forward = travel.there();
  dispatch.after_backward = travel.back();
  OpExchange combine{.op = static_cast<std::size_t>(end - block.ops.begin()) - 1};
  combine.after_forward = travel.back();
  combine.before_backward = travel.there();
  if (combine.op == dispatch.op) {  // inference: all experts in one op
    dispatch.after_forward = std::move(combine.after_forward);
    dispatch.before_backward = std::move(combine.before_backward);
    return {std::move(dispatch)};
  }
  if (!plan.pieces.overlap_shared_experts) return {std::move(dispatch), std::move(combine)};
  OpExchange shared{.op = static_cast<std::size_t>(
                        std::ranges::find_if(block.ops, is_shared_expert) - block.ops.begin())};
  shared.before_forward = std::move(dispatch.before_forward);
  shared.before_forward.back().kind = LayerStep::Kind::kDetached;
  dispatch.before_forward.clear();
  dispatch.after_backward.back().kind = LayerStep::Kind::kDetached;
  shared.receiver = dispatch.op;
  shared.starts_step = dispatch.starts_step = true;
  return {std::move(shared), std::move(dispatch), std::move(combine)};
}

std::int64_t expert_bytes(const TokenRouting& routing, const Ranks& mesh,
                          const Precision& precision, const ExpertExchange& exchange,
                          const ExpertsAgain& again) {
  const EachWay once = bytes_once(routing, mesh, precision, exchange);
  return once.there * (again.dispatch ? 3 : 2) + once.back * (again.combine ? 3 : 2);
}

}  // namespace stepsim
