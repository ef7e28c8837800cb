#include "sim/collectives/algorithms/chain.h"

namespace stepsim {

std::uint32_t Chain::hops_before(std::uint32_t member) const {
  const std::uint32_t place = place_of(member);
  return reduces() ? members() - 1 - place : place;
}

std::optional<CollectiveMessage> Chain::message(std::uint32_t, std::uint32_t round,
                                                std::uint32_t member) const {
  const std::uint32_t hops = hops_before(member);
  if (hops == members() - 1 || round < hops || round - hops >= chunks_) return std::nullopt;
  const std::uint32_t place = place_of(member);
  return CollectiveMessage{.to = member_after_root(reduces() ? place - 1 : place + 1),
                           .bytes = bytes_of_parts(round - hops, 1, chunks_),
                           .reduce = reduces()};
}

std::uint32_t Chain::receives(std::uint32_t, std::uint32_t round, std::uint32_t member) const {
  const std::uint32_t hops = hops_before(member);
  return hops > 0 && round + 1 >= hops && round + 1 - hops < chunks_ ? 1 : 0;
}

void Chain::blocks(std::uint32_t, std::uint32_t round, std::uint32_t member,
                   std::vector<std::uint32_t>& out) const {
  out.push_back(round - hops_before(member));
}

}  // namespace stepsim
