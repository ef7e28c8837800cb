#include "schedules/lowering/stages/expert_chips.h"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

#include "schedules/lowering/stages/stage.h"
#include "schedules/plan/inference_plan.h"

namespace stepsim {
namespace {

// Returns the copies that one expert chip gets of one attention chip, or the results it sends back.
// The tensor ranks of a replica have equal parts of its tokens; what pads them isn't sent.
Bytes bytes_of_pair(const ParallelPlan& plan, const TokenRouting& routing, Bytes token,
                    DataType type) {
  const std::int64_t element = size_of(type).value();
  const std::int64_t elements =
      requests_of(plan).tokens() * routing.copies * token.value() / element;
  return Bytes(part_of(elements, plan.mesh.tp * plan.pass_experts.chips) * element);
}

ByteMatrix matrix_of(const ParallelPlan& plan, Bytes pair, bool to_experts) {
  const auto members = static_cast<std::uint32_t>(plan.ranks());
  const auto first_expert = static_cast<std::uint32_t>(plan.mesh_ranks());
  ByteMatrix matrix{.members = members};
  matrix.bytes.resize(std::size_t{members} * members);
  for (std::uint32_t attention = 0; attention < first_expert; ++attention) {
    for (std::uint32_t expert = first_expert; expert < members; ++expert) {
      const std::uint32_t source = to_experts ? attention : expert;
      const std::uint32_t destination = to_experts ? expert : attention;
      matrix.bytes[std::size_t{source} * members + destination] = pair;
    }
  }
  return matrix;
}

enum Way : std::uint8_t { kToExperts, kToAttention };

LayerStep travel(const ParallelPlan& plan, const TokenRouting& routing,
                 const ExpertExchange& exchange, Way way) {
  const ByteMatrix& matrix = exchange.matrices[way];
  const bool back = way == kToAttention;
  LayerStep step =
      stepsim::exchange(back ? Lane::kCombine : Lane::kDispatch, CollectiveOp::kAllToAll,
                        largest_buffer(matrix), back ? plan.combined() : plan.dispatched());
  step.byte_matrix = exchange.first + way;
  step.experts = ExpertHalf{.combines = back,
                            .tokens = part_of(requests_of(plan).tokens(), plan.mesh.tp),
                            .top_k = routing.copies,
                            .experts = routing.experts,
                            .token_bytes = back ? routing.combined : routing.dispatched,
                            .expert_chips = plan.pass_experts.chips};
  return step;
}

// Returns the copies of all attention chips that one expert chip gets, or their results.
Bytes at_expert_chip(const ParallelPlan& plan, const ExpertExchange& exchange, Way way) {
  const auto expert = static_cast<std::uint32_t>(plan.mesh_ranks());
  const ByteMatrix& matrix = exchange.matrices[way];
  return plan.mesh_ranks() *
         (way == kToExperts ? matrix.between(0, expert) : matrix.between(expert, 0));
}

}  // namespace

ExpertExchange exchange_with_expert_chips(const ParallelPlan& plan, const TokenRouting& routing) {
  assert(plan.splits_ffn());
  const Bytes there = bytes_of_pair(plan, routing, routing.dispatched, plan.dispatched());
  const Bytes back = bytes_of_pair(plan, routing, routing.combined, plan.combined());
  ExpertExchange exchange;
  exchange.matrices = {matrix_of(plan, there, true), matrix_of(plan, back, false)};
  return exchange;
}

SplitBlock split_block(Layer block, const ParallelPlan& plan, const ExpertExchange& exchange) {
  assert(plan.splits_ffn() && block.routing);
  const TokenRouting& routing = *block.routing;
  SplitBlock split{.attention = shared_experts_beside_dispatch(std::move(block)),
                   .of_attention = {},
                   .experts = {},
                   .of_experts = {}};
  std::vector<LayerOp>& ops = split.attention.ops;
  const auto expert = std::ranges::find(ops, Region::kExpert, &LayerOp::region);
  const auto last_before = std::find_if(std::make_reverse_iterator(expert), ops.rend(),
                                        [](const LayerOp& op) { return !is_shared_expert(op); });
  const auto dispatcher = static_cast<std::size_t>(ops.rend() - last_before) - 1;
  const auto receiver = static_cast<std::size_t>(expert - ops.begin());
  split.of_attention = {
      {.op = dispatcher, .after_forward = {travel(plan, routing, exchange, kToExperts)}},
      {.op = receiver, .before_forward = {travel(plan, routing, exchange, kToAttention)}}};
  split.experts.name = split.attention.name;
  split.experts.ops = {std::move(*expert)};
  ops.erase(expert);
  if (plan.mesh.etp == 1) return split;
  const auto of_group = [&](CollectiveOp op, Way way, DataType type) {
    return stepsim::exchange(Lane::kExpertTensor, op,
                             plan.mesh.etp * at_expert_chip(plan, exchange, way), type);
  };
  split.of_experts = {
      {.op = 0,
       .before_forward = {of_group(CollectiveOp::kAllGather, kToExperts, plan.dispatched())},
       .after_forward = {of_group(CollectiveOp::kReduceScatter, kToAttention, plan.combined())}}};
  return split;
}

Bytes bytes_of_split_layer(const ParallelPlan& plan, const TokenRouting& routing) {
  assert(plan.splits_ffn());
  const Bytes pair = bytes_of_pair(plan, routing, routing.dispatched, plan.dispatched()) +
                     bytes_of_pair(plan, routing, routing.combined, plan.combined());
  // The etp chips that share an expert pass all copies on to each other.
  return plan.mesh_ranks() * plan.pass_experts.chips * plan.mesh.etp * pair;
}

}  // namespace stepsim
