#include "sim/run/transport.h"

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
  for (std::size_t i = 0; i < transfer.uses.size(); ++i) {
    const LinkUse& use = transfer.uses[i];
    const double bytes = static_cast<double>(transfer.bytes.value()) * use.weight;
    const double of_data = data.empty() ? bytes : data[i];
    book(use.link, bytes, of_data);
    if (!by_packets_) continue;
    const LinkUse spread = cluster_.fabric.spread(use.link);
    if (spread.link != use.link) book(spread.link, bytes * spread.weight, of_data * spread.weight);
  }
  network_.start(now, table_.add(owner), transfer);
}

void Transport::book(LinkId link, double bytes, double data) {
  routed_[link.index()] += bytes;
  if (!data_.empty()) data_[link.index()] += data;
}

double Transport::data_of(LinkId link, double carried) const {
  if (data_.empty()) return carried;
  const auto group = cluster_.fabric.group_of(link);
  if (!group) return data_[link.index()];
  const std::uint32_t id = cluster_.fabric.link_id(*group).index();
  return routed_[id] > 0 ? carried * (data_[id] / routed_[id]) : 0;
}

void Transport::send(Time now, std::uint32_t from_chip, std::uint32_t to_chip, Bytes bytes,
                     const TransferOwner& owner) {
  links_.clear();
  const Duration latency = route(from_chip, to_chip, links_);
  if (cluster_.library.ideal()) return send_routed(now, latency, bytes, bytes, owner);
  const HopKind kind = hop_kind(from_chip, to_chip);
  Bandwidth narrowest{};
  for (const LinkId link : links_) {
    const Bandwidth width = cluster_.fabric.width(cluster_.fabric.spread(link));
    narrowest = narrowest.value() == 0 ? width : std::min(narrowest, width);
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
  for (const LinkId link : links_) {
    uses_.push_back(by_packets_ ? LinkUse{link, 1} : cluster_.fabric.spread(link));
  }
  start_message(now, {.bytes = wire, .latency = latency, .uses = uses_, .order = owner.order},
                bytes, owner);
}

void Transport::start_message(Time now, const Transfer& message, Bytes data,
                              const TransferOwner& owner) {
  data_of_links_.clear();
  if (!data_.empty()) {
    for (const LinkUse& use : message.uses) {
      data_of_links_.push_back(use.weight * static_cast<double>(data.value()));
    }
  }
  start(now, message, owner, data_of_links_);
}

void Transport::send_over(Time now, LinkId link, Bytes bytes, HopKind kind,
                          const TransferOwner& owner, const LibraryCost& cost, bool first) {
  const auto of_kind = static_cast<std::size_t>(kind);
  Duration latency = cluster_.fabric.link(link).latency + cost.hop[of_kind];
  if (first) latency += cost.start;
  uses_.assign(1, {link, 1});
  const LinkUse spread = cluster_.fabric.spread(link);
  if (!by_packets_ && spread.link != link) uses_.push_back(spread);
  start_message(now,
                {.bytes = on_the_wire(bytes, cost.wire[of_kind]),
                 .latency = latency,
                 .uses = uses_,
                 .order = owner.order,
                 .keeps_links = true},
                bytes, owner);
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
