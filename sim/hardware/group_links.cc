#include "sim/hardware/group_links.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace stepsim {
namespace {

void take_slower(std::optional<Bandwidth>& slowest, Bandwidth link) {
  slowest = slowest ? std::min(*slowest, link) : link;
}

// Returns nullopt if the chip's data does not give the rate.
std::optional<Bandwidth> if_given(Bandwidth rate) {
  return rate.value() > 0 ? std::optional(rate) : std::nullopt;
}

// A member and the node that it lies in.
struct Seat {
  std::uint32_t node = 0;
  std::uint32_t chip = 0;
  friend auto operator<=>(const Seat&, const Seat&) = default;
};

// Returns the first of the narrowest links of a route.
LinkId narrowest(const Fabric& fabric, const std::vector<LinkId>& route) {
  return *std::ranges::min_element(route, {},
                                   [&](LinkId link) { return fabric.width(fabric.spread(link)); });
}

}  // namespace

std::vector<std::uint32_t> nodes_of(const Places& places, std::span<const std::uint32_t> chips) {
  const std::uint32_t per_node = chips_per_node(places);
  std::unordered_map<std::uint32_t, std::uint32_t> numbers;  // looked up, never iterated
  std::vector<std::uint32_t> nodes;
  nodes.reserve(chips.size());
  for (const std::uint32_t chip : chips) {
    const auto number = static_cast<std::uint32_t>(numbers.size());
    nodes.push_back(numbers.try_emplace(chip / per_node, number).first->second);
  }
  return nodes;
}

bool switches_can_add(DataType type) {
  return type == DataType::kFp32 || type == DataType::kBf16 || type == DataType::kFp16;
}

std::optional<Bandwidth> adder_of(const Cluster& cluster, DataType type) {
  return if_given(cluster.chip.communication.reduction_of(type));
}

GroupLinks links_of(const Cluster& cluster, std::span<const std::uint32_t> chips,
                    std::optional<DataType> type) {
  const std::uint32_t of_node = chips_per_node(cluster.places);
  GroupLinks links{.members = static_cast<std::uint32_t>(chips.size()),
                   .memory = if_given(cluster.chip.memory_bandwidth),
                   .units = std::max<std::int64_t>(1, cluster.chip.communication.units)};
  if (type) links.adder = adder_of(cluster, *type);
  std::vector<LinkId> route;
  const auto take_route = [&](std::uint32_t from, std::uint32_t to) {
    route.clear();
    cluster.router->route(cluster.places.chips[from], cluster.places.chips[to], 0, route);
    std::optional<Bandwidth>& slowest =
        from / of_node == to / of_node ? links.inside : links.network;
    for (const LinkId link : route) {
      take_slower(slowest, cluster.fabric.width(cluster.fabric.spread(link)));
    }
  };
  std::vector<Seat> seats;
  for (std::size_t member = 0; member < chips.size(); ++member) {
    const std::size_t next = member + 1 == chips.size() ? 0 : member + 1;
    seats.push_back({chips[member] / of_node, chips[member]});
    if (chips[member] != chips[next]) take_route(chips[member], chips[next]);
  }
  std::ranges::sort(seats);
  std::vector<std::size_t> firsts;  // seat of the first member of each node
  for (std::size_t seat = 0; seat < seats.size(); ++seat) {
    if (seat == 0 || seats[seat].node != seats[seat - 1].node) firsts.push_back(seat);
  }
  links.nodes = static_cast<std::uint32_t>(firsts.size());
  links.of_node = links.members;
  links.cards = links.members;
  std::vector<LinkId> cards;
  for (std::size_t node = 0; node < firsts.size(); ++node) {
    const bool is_last = node + 1 == firsts.size();
    const std::size_t end = is_last ? seats.size() : firsts[node + 1];
    links.of_node = std::min(links.of_node, static_cast<std::uint32_t>(end - firsts[node]));
    if (firsts.size() == 1) continue;
    // Each member's way to the member at its place in the next node, or to the last one there.
    const std::size_t next = is_last ? 0 : node + 1;
    const std::size_t next_end = next + 1 == firsts.size() ? seats.size() : firsts[next + 1];
    cards.clear();
    for (std::size_t seat = firsts[node]; seat < end; ++seat) {
      const std::size_t other = std::min(firsts[next] + (seat - firsts[node]), next_end - 1);
      take_route(seats[seat].chip, seats[other].chip);
      cards.push_back(narrowest(cluster.fabric, route));
    }
    std::ranges::sort(cards);
    const auto different = std::unique(cards.begin(), cards.end()) - cards.begin();
    links.cards = std::min(links.cards, static_cast<std::uint32_t>(different));
  }
  links.nvls = cluster.chip.communication.nvls && cluster.library.inside == HopKind::kNvlink;
  const auto adder = std::ranges::find_if(
      cluster.adders, [](const std::optional<LinkId>& link) { return link.has_value(); });
  if (adder != cluster.adders.end()) {
    links.switch_adders = cluster.fabric.link(**adder).bandwidth;
  }
  return links;
}

}  // namespace stepsim
