#include "experiment/step/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "schedules/plan/axis.h"
#include "sim/base/quantity_text.h"
#include "sim/hardware/group_links.h"
#include "sim/hardware/group_shape.h"

namespace stepsim {
namespace {

bool stays_close(Axis axis) {
  return axis == Axis::kTensor || axis == Axis::kContext || axis == Axis::kExpert;
}

std::vector<std::uint32_t> chips_of(const std::vector<RankId>& members, const OpGraph& graph) {
  std::vector<std::uint32_t> chips;
  for (const RankId rank : members) chips.push_back(graph.ranks[rank.index()].chip);
  return chips;
}

// Returns the links of the group that spans most nodes.
GroupLinks widest(const Communicator& communicator, const OpGraph& graph, const Cluster& cluster) {
  GroupLinks result;
  for (const std::vector<RankId>& group : communicator.groups) {
    const GroupLinks links = links_of(cluster, chips_of(group, graph));
    if (links.nodes > result.nodes) result = links;
  }
  return result;
}

// Returns the fastest links between chips of one node; nullopt if a node is one chip.
std::optional<Bandwidth> inside_a_node(const Cluster& cluster) {
  std::vector<std::uint32_t> chips(chips_per_node(cluster.places));
  for (std::uint32_t chip = 0; chip < chips.size(); ++chip) chips[chip] = chip;
  return links_of(cluster, chips).inside;
}

std::optional<std::string> leaves_the_node(const Communicator& communicator, const OpGraph& graph,
                                           const Cluster& cluster, std::optional<Bandwidth> inside,
                                           Duration exposed) {
  const GroupLinks links = widest(communicator, graph, cluster);
  if (links.nodes < 2 || !inside || !links.network || *inside <= *links.network) {
    return std::nullopt;
  }
  return fmt::format(
      "{} spans {} nodes: its traffic leaves the links inside a node ({}) for those between nodes "
      "({}), which are {:.3g} times slower; exposed {} is {} of the step",
      name_of(communicator.axis), links.nodes, to_text(*inside), to_text(*links.network),
      inside->value() / links.network->value(), name_of(communicator.axis), to_text(exposed));
}

std::optional<std::string> is_no_ring(const Communicator& communicator, const OpGraph& graph,
                                      const Cluster& cluster) {
  const auto& levels = cluster.places.levels;
  if (std::ranges::none_of(
          levels, [](const Level& level) { return level.kind == LevelKind::kTorusAxis; })) {
    return std::nullopt;
  }
  for (const std::vector<RankId>& group : communicator.groups) {
    const GroupShape shape = describe(cluster, chips_of(group, graph));
    for (const GroupDimension& dimension : shape.dimensions) {
      if (!dimension.torus_axis) {
        return fmt::format("{} fills no box of the torus: its messages cross chips of other groups",
                           name_of(communicator.axis));
      }
      if (dimension.size > 2 && !dimension.wraps) {
        return fmt::format(
            "{} has {} chips in a line, not a ring: up to twice the time of an axis that wraps",
            name_of(communicator.axis), dimension.size);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<PlacementNote> placement_notes(const OpGraph& graph, const Cluster& cluster,
                                           const SimulationResult& result) {
  std::vector<PlacementNote> notes;
  const std::optional<Bandwidth> inside = inside_a_node(cluster);
  for (const Communicator& communicator : graph.communicators) {
    const Axis axis = communicator.axis;
    const auto add = [&](const std::optional<std::string>& text) {
      if (!text) return;
      const auto same = [&](const PlacementNote& note) { return note.text == *text; };
      if (std::ranges::none_of(notes, same)) notes.push_back({axis, *text});
    };
    if (!stays_close(axis)) continue;
    const Duration exposed = result.breakdown.exposed_communication[static_cast<std::size_t>(axis)];
    add(leaves_the_node(communicator, graph, cluster, inside, exposed));
    add(is_no_ring(communicator, graph, cluster));
  }
  return notes;
}

}  // namespace stepsim
