#include "schedules/lowering/stages/expert_chips.h"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

#include "schedules/lowering/stages/stage.h"

namespace stepsim {
namespace {

// Returns the copies that one expert chip gets of one attention chip, or the results it sends back.
// The tensor ranks of a replica have equal parts of its tokens; what pads them isn't sent.
Bytes bytes_of_pair(const Ranks& mesh, std::int64_t tokens, const TokenRouting& routing,
                    Bytes token, DataType type) {
  const std::int64_t element = size_of(type).value();
  const std::int64_t elements = tokens * routing.copies * token.value() / element;
  return Bytes(part_of(elements, mesh.tp * mesh.expert_chips) * element);
}

ByteMatrix matrix_of(const Ranks& mesh, Bytes pair, bool to_experts) {
  const auto members = static_cast<std::uint32_t>(mesh.ranks());
  const auto first_expert = static_cast<std::uint32_t>(mesh.mesh_ranks());
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

LayerStep travel(const Ranks& mesh, const Precision& precision, std::int64_t tokens,
                 const TokenRouting& routing, const ExpertExchange& exchange, Way way) {
  const ByteMatrix& matrix = exchange.matrices[way];
  const bool back = way == kToAttention;
  LayerStep step = stepsim::exchange(back ? Lane::kCombine : Lane::kDispatch,
                                     CollectiveOp::kAllToAll, largest_buffer(matrix),
                                     back ? precision.combined() : precision.dispatched());
  step.byte_matrix = exchange.first + way;
  step.experts = ExpertHalf{.combines = back,
                            .tokens = part_of(tokens, mesh.tp),
                            .top_k = routing.copies,
                            .experts = routing.experts,
                            .token_bytes = back ? routing.combined : routing.dispatched,
                            .expert_chips = mesh.expert_chips};
  return step;
}

// Returns the copies of all attention chips that one expert chip gets, or their results.
Bytes at_expert_chip(const Ranks& mesh, const ExpertExchange& exchange, Way way) {
  const auto expert = static_cast<std::uint32_t>(mesh.mesh_ranks());
  const ByteMatrix& matrix = exchange.matrices[way];
  return mesh.mesh_ranks() *
         (way == kToExperts ? matrix.between(0, expert) : matrix.between(expert, 0));
}

}  // namespace

ExpertExchange exchange_with_expert_chips(const Ranks& mesh, const Precision& precision,
                                          std::int64_t tokens, const TokenRouting& routing) {
  assert(mesh.splits_ffn());
  const Bytes there =
      bytes_of_pair(mesh, tokens, routing, routing.dispatched, precision.dispatched());
  const Bytes back = bytes_of_pair(mesh, tokens, routing, routing.combined, precision.combined());
  ExpertExchange exchange;
  exchange.matrices = {matrix_of(mesh, there, true), matrix_of(mesh, back, false)};
  return exchange;
}

SplitBlock split_block(Layer block, const Ranks& mesh, const Precision& precision,
                       std::int64_t tokens, const ExpertExchange& exchange) {
  assert(mesh.splits_ffn() && block.routing);
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
      {.op = dispatcher,
       .after_forward = {travel(mesh, precision, tokens, routing, exchange, kToExperts)}},
      {.op = receiver,
       .before_forward = {travel(mesh, precision, tokens, routing, exchange, kToAttention)}}};
  split.experts.name = split.attention.name;
  split.experts.ops = {std::move(*expert)};
  ops.erase(expert);
  if (mesh.etp == 1) return split;
  const auto of_group = [&](CollectiveOp op, Way way, DataType type) {
    return stepsim::exchange(Lane::kExpertTensor, op,
                             mesh.etp * at_expert_chip(mesh, exchange, way), type);
  };
  split.of_experts = {
      {.op = 0,
       .before_forward = {of_group(CollectiveOp::kAllGather, kToExperts, precision.dispatched())},
       .after_forward = {
           of_group(CollectiveOp::kReduceScatter, kToAttention, precision.combined())}}};
  return split;
}

Bytes bytes_of_split_layer(const Ranks& mesh, const Precision& precision, std::int64_t tokens,
                           const TokenRouting& routing) {
  assert(mesh.splits_ffn());
  const Bytes pair =
      bytes_of_pair(mesh, tokens, routing, routing.dispatched, precision.dispatched()) +
      bytes_of_pair(mesh, tokens, routing, routing.combined, precision.combined());
  // The etp chips that share an expert pass all copies on to each other.
  return mesh.mesh_ranks() * mesh.expert_chips * mesh.etp * pair;
}

}  // namespace stepsim
