#include "sim/collectives/algorithms/trees/binomial_tree.h"

#include <algorithm>

namespace stepsim {

bool BinomialTree::is_far_end(std::uint32_t round, std::uint32_t place) const {
  return place % (2 * distance(round)) == distance(round);
}

bool BinomialTree::is_near_end(std::uint32_t round, std::uint32_t place) const {
  return place % (2 * distance(round)) == 0 && place + distance(round) < members();
}

// Returns the subtree behind the far end of the edge over which `member` sends.
BinomialTree::Subtree BinomialTree::subtree(std::uint32_t round, std::uint32_t member) const {
  const std::uint32_t far = place_of(member) + (to_root() ? 0 : distance(round));
  return {far, std::min(distance(round), members() - far)};
}

std::optional<CollectiveMessage> BinomialTree::message(std::uint32_t, std::uint32_t round,
                                                       std::uint32_t member) const {
  const std::uint32_t place = place_of(member);
  if (!(to_root() ? is_far_end(round, place) : is_near_end(round, place))) return std::nullopt;
  CollectiveMessage result{
      .to = member_after_root(to_root() ? place - distance(round) : place + distance(round)),
      .bytes = task().bytes,
      .reduce = task().op == CollectiveOp::kReduce};
  if (!whole()) {
    const Subtree carried = subtree(round, member);
    result.bytes = bytes_of_parts(position_after_root(carried.place), carried.members, members());
  }
  return result;
}

std::uint32_t BinomialTree::receives(std::uint32_t, std::uint32_t round,
                                     std::uint32_t member) const {
  const std::uint32_t place = place_of(member);
  return (to_root() ? is_near_end(round, place) : is_far_end(round, place)) ? 1 : 0;
}

void BinomialTree::blocks(std::uint32_t, std::uint32_t round, std::uint32_t member,
                          std::vector<std::uint32_t>& out) const {
  if (whole()) {
    out.push_back(0);
    return;
  }
  const Subtree carried = subtree(round, member);
  append_parts(position_after_root(carried.place), carried.members, members(), out);
}

}  // namespace stepsim
