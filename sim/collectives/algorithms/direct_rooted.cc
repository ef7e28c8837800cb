#include "sim/collectives/algorithms/direct_rooted.h"

#include <algorithm>
#include <cassert>

namespace stepsim {

DirectRooted::DirectRooted(const CollectiveTask& task, const std::vector<std::uint32_t>& order)
    : FlatAlgorithm(task, order) {
  assert(task.op == CollectiveOp::kGather || task.op == CollectiveOp::kScatter);
  constexpr std::uint32_t kAtOnce = 16;
  if (gathers()) return;
  lanes_ = task.in_one_piece ? members() - 1 : std::min(kAtOnce, members() - 1);
  rounds_ = (members() - 1 + lanes_ - 1) / lanes_;
}

std::optional<CollectiveMessage> DirectRooted::message(std::uint32_t lane, std::uint32_t round,
                                                       std::uint32_t member) const {
  if (gathers()) {
    if (member == task().root) return std::nullopt;
    return CollectiveMessage{.to = task().root,
                             .bytes = bytes_of_parts(shard_of(member), 1, members())};
  }
  const std::uint32_t place = round * lanes_ + lane + 1;
  if (member != task().root || place >= members()) return std::nullopt;
  return CollectiveMessage{.to = member_after_root(place),
                           .bytes = bytes_of_parts(position_after_root(place), 1, members())};
}

std::uint32_t DirectRooted::receives(std::uint32_t lane, std::uint32_t round,
                                     std::uint32_t member) const {
  if (gathers()) return member == task().root ? members() - 1 : 0;
  return place_of(member) == round * lanes_ + lane + 1 ? 1 : 0;
}

void DirectRooted::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                          std::vector<std::uint32_t>& out) const {
  out.push_back(gathers() ? shard_of(member) : position_after_root(round * lanes_ + lane + 1));
}

}  // namespace stepsim
