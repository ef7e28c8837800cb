#include "sim/collectives/algorithms/exchange.h"

namespace stepsim {

std::uint32_t Exchange::partner(std::uint32_t lane, std::uint32_t round,
                                std::uint32_t member) const {
  return member_at((position_of(member) + lane + round + 1) % members());
}

std::optional<CollectiveMessage> Exchange::message(std::uint32_t lane, std::uint32_t round,
                                                   std::uint32_t member) const {
  const std::uint32_t to = partner(lane, round, member);
  if (task().matrix != nullptr) {
    const Bytes bytes = task().matrix->between(member, to);
    if (bytes == Bytes(0)) return std::nullopt;
    return CollectiveMessage{.to = to, .bytes = bytes};
  }
  std::uint32_t part = to;  // part of the buffer, here for an all-to-all
  if (task().op == CollectiveOp::kAllGather) part = shard_of(member);
  if (task().op == CollectiveOp::kReduceScatter) part = shard_of(to);
  return CollectiveMessage{.to = to,
                           .bytes = bytes_of_parts(part, 1, members()),
                           .reduce = task().op == CollectiveOp::kReduceScatter};
}

std::uint32_t Exchange::receives(std::uint32_t lane, std::uint32_t round,
                                 std::uint32_t member) const {
  if (task().matrix == nullptr) return 1;
  const std::uint32_t back = (lane + round + 1) % members();
  const std::uint32_t from = member_at((position_of(member) + members() - back) % members());
  return task().matrix->between(from, member) > Bytes(0) ? 1 : 0;
}

std::uint32_t Exchange::shards() const {
  return task().op == CollectiveOp::kAllToAll ? members() * members() : members();
}

void Exchange::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                      std::vector<std::uint32_t>& out) const {
  const std::uint32_t to = partner(lane, round, member);
  switch (task().op) {
    case CollectiveOp::kAllGather:
      out.push_back(shard_of(member));
      break;
    case CollectiveOp::kReduceScatter:
      out.push_back(shard_of(to));
      break;
    default:
      out.push_back(member * members() + to);
  }
}

}  // namespace stepsim
