#include "sim/hardware/group_links.h"

#include <algorithm>
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

// Returns the length of the shortest run of equal numbers.
std::uint32_t smallest_run(std::span<const std::uint32_t> sorted) {
  std::ptrdiff_t smallest = std::ssize(sorted);
  for (auto at = sorted.begin(); at != sorted.end();) {
    const auto end = std::upper_bound(at, sorted.end(), *at);
    smallest = std::min(smallest, end - at);
    at = end;
  }
  return static_cast<std::uint32_t>(smallest);
}

}  // namespace

std::uint32_t chips_per_node(const Places& places) {
  std::uint32_t chips = 1;
  for (const Level& level : places.levels) {
    if (level.name != "gpu" && level.name != "pcie_switch" && level.name != "socket") break;
    chips *= level.size;
  }
  return chips;
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
  std::vector<std::uint32_t> nodes;
  for (const std::uint32_t chip : chips) nodes.push_back(chip / of_node);
  std::vector<LinkId> route;
  for (std::size_t member = 0; member < chips.size(); ++member) {
    const std::size_t next = member + 1 == chips.size() ? 0 : member + 1;
    if (chips[member] == chips[next]) continue;
    route.clear();
    cluster.router->route(cluster.places.chips[chips[member]], cluster.places.chips[chips[next]], 0,
                          route);
    std::optional<Bandwidth>& slowest = nodes[member] == nodes[next] ? links.inside : links.network;
    for (const LinkId link : route) {
      take_slower(slowest, cluster.fabric.width(cluster.fabric.spread(link)));
    }
  }
  std::ranges::sort(nodes);
  links.of_smallest_node = smallest_run(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  links.nodes = static_cast<std::uint32_t>(nodes.size());
  links.nvls = cluster.chip.communication.nvls && cluster.library.inside == HopKind::kNvlink;
  const auto adder = std::ranges::find_if(
      cluster.adders, [](const std::optional<LinkId>& link) { return link.has_value(); });
  if (adder != cluster.adders.end()) {
    links.switch_adders = cluster.fabric.link(**adder).bandwidth;
  }
  return links;
}

}  // namespace stepsim
