#include "sim/transport.h"

namespace stepsim {

void Transport::start(Time now, const Transfer& transfer, const TransferOwner& owner) {
  const auto bytes = static_cast<double>(transfer.bytes.value());
  for (const LinkUse& use : transfer.uses) routed_[use.link.index()] += bytes * use.weight;
  network_.start(now, table_.add(owner), transfer);
}

void Transport::send(Time now, std::uint32_t from_chip, std::uint32_t to_chip, Bytes bytes,
                     const TransferOwner& owner) {
  links_.clear();
  uses_.clear();
  const Duration latency = route(from_chip, to_chip, links_);
  for (const LinkId link : links_) uses_.push_back({link, 1.0});
  start(now, {.bytes = bytes, .latency = latency, .uses = uses_, .order = owner.order}, owner);
}

Duration Transport::route(std::uint32_t from_chip, std::uint32_t to_chip,
                          std::vector<LinkId>& links) const {
  const std::size_t before = links.size();
  const std::vector<NodeId>& chips = cluster_.places.chips;
  cluster_.router->route(chips[from_chip], chips[to_chip], 0, links);
  Duration latency{};
  for (std::size_t i = before; i < links.size(); ++i) {
    latency += cluster_.fabric.link(links[i]).latency;
  }
  return latency;
}

}  // namespace stepsim
