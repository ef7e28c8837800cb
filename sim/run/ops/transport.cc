#include "sim/run/ops/transport.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace stepsim {
namespace {

// Returns the bytes that links carry for `bytes` of data.
Bytes on_the_wire(Bytes bytes, double ratio) {
  if (ratio == 1) return bytes;
  return bytes_rounded_up(static_cast<double>(bytes.value()) * ratio);
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

void Transport::send(Time now, const Message& message) {
  Way way;
  route_message(message, way);
  if (cluster_.library.ideal()) {
    start_message(now, way, message.bytes, 1, message.owner, message.order);
    return;
  }
  const HopKind kind = hop_kind(message.from_chip, message.to_chip);
  std::optional<Bandwidth> narrowest;
  for (const LinkId link : links_) {
    const Bandwidth width = cluster_.fabric.width(cluster_.fabric.spread(link));
    narrowest = std::min(narrowest.value_or(width), width);
  }
  const LibraryCost cost =
      cost_of_message(cluster_.library, message.bytes, kind, narrowest.value_or(Bandwidth()));
  const auto of_kind = static_cast<std::size_t>(kind);
  way.of_library = cost.start + cost.hop[of_kind];
  start_message(now, way, message.bytes, cost.wire[of_kind], message.owner, message.order);
}

void Transport::send(Time now, const Message& message, const LibraryCost& cost, bool first) {
  const auto kind = static_cast<std::size_t>(hop_kind(message.from_chip, message.to_chip));
  Way way;
  route_message(message, way);
  way.of_library = first ? cost.hop[kind] + cost.start : cost.hop[kind];
  start_message(now, way, message.bytes, cost.wire[kind], message.owner, message.order);
}

void Transport::send(Time now, const SwitchMessage& message, const LibraryCost& cost, bool first) {
  const auto kind = static_cast<std::size_t>(message.kind);
  uses_.assign(1, {message.link, 1});
  const LinkUse spread = cluster_.fabric.spread(message.link);
  if (!by_packets_ && spread.link != message.link) uses_.push_back(spread);
  const Way way{.of_links = cluster_.fabric.link(message.link).latency,
                .of_library = first ? cost.hop[kind] + cost.start : cost.hop[kind],
                .keeps_links = true};
  start_message(now, way, message.bytes, cost.wire[kind], message.owner, message.order);
}

void Transport::route_message(const Message& message, Way& way) {
  links_.clear();
  way.of_links = route(message.from_chip, message.to_chip, links_);
  uses_.clear();
  for (const LinkId link : links_) {
    uses_.push_back(by_packets_ ? LinkUse{link, 1} : cluster_.fabric.spread(link));
  }
}

void Transport::start_message(Time now, const Way& way, Bytes data, double wire,
                              const TransferOwner& owner, TransferOrder order) {
  data_of_links_.clear();
  if (!data_.empty()) {
    for (const LinkUse& use : uses_) {
      data_of_links_.push_back(use.weight * static_cast<double>(data.value()));
    }
  }
  start(now,
        {.bytes = on_the_wire(data, wire),
         .latency = way.of_links + way.of_library,
         .uses = uses_,
         .order = order.key(),
         .keeps_links = way.keeps_links,
         .sender_latency = way.of_library},
        owner, data_of_links_);
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
