#include "sim/run/ops/transport.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/hardware/chip_route.h"

namespace stepsim {
namespace {

// Returns the bytes that links carry for `bytes` of data.
Bytes on_the_wire(Bytes bytes, double ratio) {
  if (ratio == 1) return bytes;
  return bytes_rounded_up(static_cast<double>(bytes.value()) * ratio);
}

}  // namespace

void Transport::send(Time now, const Message& message) {
  Way way;
  const KnownWay* const known = fold_.folds() ? &way_of(message) : nullptr;
  if (known != nullptr) {
    way.of_links = known->of_links;
  } else {
    route_message(message, way);
  }
  double wire = 1;
  if (!cluster_.library.ideal()) {
    const std::optional<Bandwidth> width = known != nullptr ? known->narrowest : narrowest();
    const HopKind kind = hop_kind(message.from_chip, message.to_chip);
    const LibraryCost cost =
        cost_of_message(cluster_.library, message.bytes, kind, width.value_or(Bandwidth()));
    const auto of_kind = static_cast<std::size_t>(kind);
    way.of_library = cost.start + cost.hop[of_kind];
    wire = cost.wire[of_kind];
  }
  if (known != nullptr) {
    start_folded(now, way, known->links, message.bytes, wire, message.owner, message.order);
  } else {
    start_message(now, way, message.bytes, wire, message.owner, message.order);
  }
}

std::optional<Bandwidth> Transport::narrowest() const {
  std::optional<Bandwidth> narrowest;
  for (const LinkId link : links_) {
    const Bandwidth width = cluster_.fabric.width(cluster_.fabric.spread(link));
    narrowest = std::min(narrowest.value_or(width), width);
  }
  return narrowest;
}

const Transport::KnownWay& Transport::way_of(const Message& message) {
  const std::uint64_t chips = std::uint64_t{message.from_chip} << 32 | message.to_chip;
  const auto [place, is_new] = known_.try_emplace(chips);
  KnownWay& known = place->second;
  if (is_new) {
    Way way;
    route_message(message, way);
    known.of_links = way.of_links;
    known.narrowest = narrowest();
    known.links = fold_.fold(uses_, message.count);
  }
  return known;
}

void Transport::send(Time now, const Message& message, const LibraryCost& cost, bool begins,
                     Duration waited) {
  const auto kind = static_cast<std::size_t>(hop_kind(message.from_chip, message.to_chip));
  Way way;
  route_message(message, way);
  way.of_library = begins ? cost.hop[kind] + cost.start : cost.hop[kind];
  way.waited = waited;
  start_message(now, way, message.bytes, cost.wire[kind], message.owner, message.order);
}

void Transport::send(Time now, const SwitchMessage& message, const LibraryCost& cost, bool begins,
                     Duration waited) {
  const auto kind = static_cast<std::size_t>(message.kind);
  uses_.assign(1, {message.link, 1});
  const LinkUse spread = cluster_.fabric.spread(message.link);
  if (!by_packets_ && spread.link != message.link) uses_.push_back(spread);
  const Way way{.of_links = cluster_.fabric.link(message.link).latency,
                .of_library = begins ? cost.hop[kind] + cost.start : cost.hop[kind],
                .waited = waited,
                .keeps_links = true};
  start_message(now, way, message.bytes, cost.wire[kind], message.owner, message.order);
}

void Transport::send(Time now, const HostCopy& copy) {
  const Way way{.of_links = copy.latency, .keeps_links = true};
  if (fold_.folds()) {
    start_folded(now, way, fold_.fold(copy.uses, copy.count), copy.bytes, 1, copy.owner,
                 copy.order);
    return;
  }
  uses_.assign(copy.uses.begin(), copy.uses.end());
  start_message(now, way, copy.bytes, 1, copy.owner, copy.order);
}

void Transport::repeat(std::uint64_t times, const Past& past) {
  repeated_.routed.resize(routed_.size());
  repeated_.data.resize(data_.size());
  for (std::size_t link = 0; link < routed_.size(); ++link) {
    repeated_.routed[link] += times * (routed_[link] - past.routed[link]);
  }
  for (std::size_t link = 0; link < data_.size(); ++link) {
    repeated_.data[link] += times * (data_[link] - past.data[link]);
  }
}

void Transport::book_repeats() {
  for (std::size_t link = 0; link < repeated_.routed.size(); ++link) {
    routed_[link] += repeated_.routed[link];
  }
  for (std::size_t link = 0; link < repeated_.data.size(); ++link) {
    data_[link] += repeated_.data[link];
  }
}

void Transport::route_message(const Message& message, Way& way) {
  links_.clear();
  way.of_links = route_of(cluster_, message.from_chip, message.to_chip, links_);
  uses_.clear();
  for (const LinkId link : links_) {
    uses_.push_back(by_packets_ ? LinkUse{link, 1} : cluster_.fabric.spread(link));
  }
}

void Transport::book(const LinkUse& use, Bytes routed, Bytes data) {
  book(use.link, ExactBytes::of(routed, use.weight),
       data_.empty() ? ExactBytes() : ExactBytes::of(data, use.weight));
}

void Transport::start_message(Time now, const Way& way, Bytes data, double wire,
                              const TransferOwner& owner, TransferOrder order) {
  const Bytes bytes = on_the_wire(data, wire);
  for (const LinkUse& use : uses_) {
    book(use, bytes, data);
    if (!by_packets_) continue;
    const LinkUse spread = cluster_.fabric.spread(use.link);
    if (spread.link != use.link) book(spread, bytes, data);
  }
  start(now,
        {.bytes = bytes,
         .latency = std::max(Duration(), way.of_links + way.of_library - way.waited),
         .uses = uses_,
         .order = order.key(),
         .keeps_links = way.keeps_links,
         .sender_latency = way.of_library},
        owner);
}

void Transport::start_folded(Time now, const Way& way, const TransferLinks& links, Bytes data,
                             double wire, const TransferOwner& owner, TransferOrder order) {
  const Bytes bytes = on_the_wire(data, wire);
  for (const LinkTrack& track : links.tracks) {
    book(track.link, track.times * ExactBytes::of(bytes, track.weight),
         track.times * ExactBytes::of(data, track.weight));
  }
  start(now,
        {.bytes = bytes,
         .latency = way.of_links + way.of_library,
         .uses = links.uses,
         .order = order.key(),
         .keeps_links = way.keeps_links,
         .sender_latency = way.of_library,
         .alone = links.alone},
        owner);
}

}  // namespace stepsim
