#include "sim/transport.h"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

// What the links carry for `bytes` of data.
Bytes on_the_wire(Bytes bytes, double ratio) {
  if (ratio == 1) return bytes;
  return Bytes(static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes.value()) * ratio)));
}

}  // namespace

void Transport::start(Time now, const Transfer& transfer, const TransferOwner& owner,
                      std::span<const double> data) {
  const auto bytes = static_cast<double>(transfer.bytes.value());
  for (const LinkUse& use : transfer.uses) routed_[use.link.index()] += bytes * use.weight;
  if (!data_.empty()) {
    for (std::size_t i = 0; i < transfer.uses.size(); ++i) {
      const LinkUse& use = transfer.uses[i];
      data_[use.link.index()] += data.empty() ? bytes * use.weight : data[i];
    }
  }
  network_.start(now, table_.add(owner), transfer);
}

void Transport::send(Time now, std::uint32_t from_chip, std::uint32_t to_chip, Bytes bytes,
                     const TransferOwner& owner) {
  links_.clear();
  const Duration latency = route(from_chip, to_chip, links_);
  if (cluster_.library.ideal()) return send_routed(now, latency, bytes, bytes, owner);
  const HopKind kind = hop_kind(from_chip, to_chip);
  Bandwidth narrowest{};
  for (const LinkId link : links_) {
    const Bandwidth bandwidth = cluster_.fabric.link(link).bandwidth;
    narrowest = narrowest.value() == 0 ? bandwidth : std::min(narrowest, bandwidth);
  }
  const LibraryCost cost = cost_of_message(cluster_.library, bytes, kind, narrowest);
  const auto of_kind = static_cast<std::size_t>(kind);
  send_routed(now, latency + cost.start + cost.hop[of_kind], bytes,
              on_the_wire(bytes, cost.wire[of_kind]), owner);
}

void Transport::send(Time now, std::uint32_t from_chip, std::uint32_t to_chip, Bytes bytes,
                     const TransferOwner& owner, const LibraryCost& cost, bool first) {
  links_.clear();
  const auto kind = static_cast<std::size_t>(hop_kind(from_chip, to_chip));
  Duration latency = route(from_chip, to_chip, links_) + cost.hop[kind];
  if (first) latency += cost.start;
  send_routed(now, latency, bytes, on_the_wire(bytes, cost.wire[kind]), owner);
}

void Transport::send_routed(Time now, Duration latency, Bytes bytes, Bytes wire,
                            const TransferOwner& owner) {
  uses_.clear();
  for (const LinkId link : links_) uses_.push_back({link, 1.0});
  data_of_links_.assign(data_.empty() ? 0 : links_.size(), static_cast<double>(bytes.value()));
  start(now, {.bytes = wire, .latency = latency, .uses = uses_, .order = owner.order}, owner,
        data_of_links_);
}

void Transport::send_over(Time now, LinkId link, Bytes bytes, HopKind kind,
                          const TransferOwner& owner, const LibraryCost& cost, bool first) {
  links_.assign(1, link);
  const auto of_kind = static_cast<std::size_t>(kind);
  Duration latency = cluster_.fabric.link(link).latency + cost.hop[of_kind];
  if (first) latency += cost.start;
  send_routed(now, latency, bytes, on_the_wire(bytes, cost.wire[of_kind]), owner);
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
