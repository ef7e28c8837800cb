#include "topology/graph/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "topology/graph/host_exits.h"
#include "topology/graph/levels.h"
#include "topology/graph/path_choice.h"

namespace stepsim {
namespace {

class JoinedRouter : public Router {
 public:
  struct Parts {
    std::unique_ptr<Router> block;
    std::unique_ptr<Router> fabric;  // null if there is only one block
    std::uint32_t chips_per_block = 1;
    std::uint32_t links_per_block = 0;  // block b has those from b * this on
    std::uint32_t chips_per_host = 1;
    std::uint32_t rails = 1;
    std::uint32_t planes = 1;
    std::vector<LinkId> host_up;  // by chip; the downward link has the next id; empty: no hosts
    const HostExits* exits = nullptr;  // of the block, if its chips reach their hosts through it
    std::vector<LinkId> fabric_link;   // in plane 0, by link of the fabric; empty places: any
    std::uint32_t links_per_plane = 0;
  };

  explicit JoinedRouter(Parts parts) : parts_(std::move(parts)) {}

  void route(NodeId from, NodeId to, std::uint64_t flow_key,
             std::vector<LinkId>& out) const override {
    append(from.index(), to.index(), flow_key, nullptr, out);
  }

  void route_around(NodeId from, NodeId to, std::uint64_t flow_key, const IsDown& is_down,
                    std::vector<LinkId>& out) const override {
    append(from.index(), to.index(), flow_key, &is_down, out);
  }

 private:
  // `is_down` is null if all links are up.
  void append(std::uint32_t source, std::uint32_t destination, std::uint64_t flow_key,
              const IsDown* is_down, std::vector<LinkId>& out) const {
    if (block_of(source) == block_of(destination)) {
      cross_block(source, destination, flow_key, is_down, out);
      return;
    }
    const std::uint32_t relay = source - source % parts_.rails + destination % parts_.rails;
    if (parts_.rails > 1) cross_block(source, relay, flow_key, is_down, out);
    const std::uint32_t leaving = parts_.rails > 1 ? relay : source;
    if (parts_.exits != nullptr) cross_to_host(leaving, true, out);
    if (!parts_.host_up.empty()) out.push_back(parts_.host_up[leaving]);
    cross_fabric(leaving / parts_.chips_per_host, destination / parts_.chips_per_host, flow_key,
                 is_down, out);
    if (!parts_.host_up.empty()) out.push_back(LinkId(parts_.host_up[destination].index() + 1));
    if (parts_.exits != nullptr) cross_to_host(destination, false, out);
  }

  // Between a chip and the node of its block at which its host is attached.
  void cross_to_host(std::uint32_t chip, bool leaves, std::vector<LinkId>& out) const {
    const std::size_t first = out.size();
    const NodeId in_block(chip % parts_.chips_per_block);
    const NodeId exit =
        parts_.exits->exit_of(NodeId(in_block.index() - in_block.index() % parts_.chips_per_host));
    if (leaves) {
      parts_.exits->route_out(in_block, exit, out);
    } else {
      parts_.exits->route_in(exit, in_block, out);
    }
    const std::uint32_t offset = block_of(chip) * parts_.links_per_block;
    for (std::size_t i = first; i < out.size(); ++i) out[i] = LinkId(out[i].index() + offset);
  }

  std::uint32_t block_of(std::uint32_t chip) const { return chip / parts_.chips_per_block; }

  // Appends the route of a part. `placed` turns the part's links into links of the whole.
  template <typename Placed>
  static void append_part(const Router& part, NodeId from, NodeId to, std::uint64_t flow_key,
                          const IsDown* is_down, const Placed& placed, std::vector<LinkId>& out) {
    const std::size_t first = out.size();
    if (is_down == nullptr) {
      part.route(from, to, flow_key, out);
    } else {
      const IsDown in_part = [&](LinkId link) { return (*is_down)(placed(link)); };
      part.route_around(from, to, flow_key, in_part, out);
    }
    for (std::size_t i = first; i < out.size(); ++i) out[i] = placed(out[i]);
  }

  void cross_block(std::uint32_t source, std::uint32_t destination, std::uint64_t flow_key,
                   const IsDown* is_down, std::vector<LinkId>& out) const {
    const std::uint32_t offset = block_of(source) * parts_.links_per_block;
    append_part(
        *parts_.block, NodeId(source % parts_.chips_per_block),
        NodeId(destination % parts_.chips_per_block), flow_key, is_down,
        [offset](LinkId link) { return LinkId(link.index() + offset); }, out);
  }

  // Planes are equal paths: if a link of the chosen plane is down, the next plane is tried.
  void cross_fabric(std::uint32_t source, std::uint32_t destination, std::uint64_t flow_key,
                    const IsDown* is_down, std::vector<LinkId>& out) const {
    const std::size_t first = out.size();
    const Flow flow = {.from = source, .to = destination, .key = flow_key};
    const std::uint32_t chosen = choose({.rule = PathRule::kEcmp}, flow, 0, 0, parts_.planes);
    for (std::uint32_t tried = 0; tried < parts_.planes; ++tried) {
      out.resize(first);
      const std::uint32_t offset = (chosen + tried) % parts_.planes * parts_.links_per_plane;
      append_part(
          *parts_.fabric, NodeId(source), NodeId(destination), flow_key, is_down,
          [&](LinkId link) { return LinkId(parts_.fabric_link[link.index()].index() + offset); },
          out);
      const auto added = std::span(out).subspan(first);
      if (is_down == nullptr || std::ranges::none_of(added, *is_down)) return;
    }
  }

  Parts parts_;
};

// Adds the chips of all blocks, then the rest of each block.
void add_blocks(const BuiltTopology& block, const Joint& joint, BuiltTopology& built) {
  const Fabric& part = block.fabric;
  const std::size_t chips = block.places.chips.size();
  for (std::uint32_t b = 0; b < joint.blocks; ++b) {
    const std::string prefix = fmt::format("{}{}.", joint.block, b);
    for (std::uint32_t chip = 0; chip < chips; ++chip) {
      built.places.chips.push_back(
          built.fabric.add(NodeKind::kChip, prefix + part.node(NodeId(chip)).name));
    }
  }
  for (std::uint32_t b = 0; b < joint.blocks; ++b) {
    const std::string prefix = fmt::format("{}{}.", joint.block, b);
    const auto first_chip = built.places.chips.begin() + static_cast<std::ptrdiff_t>(b * chips);
    std::vector<NodeId> placed(first_chip, first_chip + static_cast<std::ptrdiff_t>(chips));
    for (std::size_t node = chips; node < part.nodes().size(); ++node) {
      placed.push_back(built.fabric.add(part.nodes()[node].kind, prefix + part.nodes()[node].name));
    }
    const auto first_link = static_cast<std::uint32_t>(built.fabric.links().size());
    for (const Link& link : part.links()) {
      built.fabric.connect_one_way(placed[link.from.index()], placed[link.to.index()],
                                   link.bandwidth, link.latency);
    }
    for (const LinkGroup& group : part.groups()) {
      std::vector<LinkId> links;
      for (const LinkId id : group.links) links.emplace_back(first_link + id.index());
      built.fabric.add_group(std::move(links));
    }
  }
}

// Adds the hosts, unless chips are gateways themselves. Returns all gateways. `exits`: of the
// block, or null; `rest_of_block`: its nodes that are no chips.
std::vector<NodeId> add_gateways(const Joint& joint, std::size_t chips_per_block,
                                 const HostExits* exits, std::size_t rest_of_block,
                                 BuiltTopology& built, std::vector<LinkId>& host_up) {
  if (joint.chips_per_host == 1) return built.places.chips;
  const std::size_t hosts_per_block = chips_per_block / joint.chips_per_host;
  std::vector<NodeId> hosts;
  for (std::size_t chip = 0; chip < built.places.chips.size(); ++chip) {
    if (chip % joint.chips_per_host == 0) {
      hosts.push_back(built.fabric.add(
          NodeKind::kHost, fmt::format("{}{}.host{}", joint.block, hosts.size() / hosts_per_block,
                                       hosts.size() % hosts_per_block)));
    }
    if (exits == nullptr) {
      host_up.push_back(built.fabric.connect(built.places.chips[chip], hosts.back(),
                                             joint.host_bandwidth, joint.host_latency));
    } else if (chip % joint.chips_per_host == 0) {
      const NodeId first(static_cast<std::uint32_t>(chip % chips_per_block));
      const std::size_t block = chip / chips_per_block;
      const NodeId exit(
          static_cast<std::uint32_t>(built.places.chips.size() + block * rest_of_block +
                                     exits->exit_of(first).index() - chips_per_block));
      host_up.push_back(
          built.fabric.connect(exit, hosts.back(), joint.host_bandwidth, joint.host_latency));
    } else {
      host_up.push_back(host_up.back());
    }
  }
  return hosts;
}

// Adds one copy of `part` with the gateways in the places of its chips. Returns the added links, by
// link of the part. Links of places without a gateway are left out.
std::vector<LinkId> add_plane(const Fabric& part, const std::vector<NodeId>& gateways,
                              std::size_t places, const std::string& prefix, Fabric& fabric) {
  std::vector<std::optional<NodeId>> placed(gateways.begin(), gateways.end());
  placed.resize(places);
  for (std::size_t node = places; node < part.nodes().size(); ++node) {
    placed.emplace_back(fabric.add(part.nodes()[node].kind, prefix + part.nodes()[node].name));
  }
  std::vector<LinkId> added;
  for (const Link& link : part.links()) {
    const auto from = placed[link.from.index()];
    const auto to = placed[link.to.index()];
    added.push_back(from && to ? fabric.connect_one_way(*from, *to, link.bandwidth, link.latency)
                               : LinkId());
  }
  for (const LinkGroup& group : part.groups()) {
    std::vector<LinkId> links;
    for (const LinkId id : group.links) {
      const Link& link = part.link(id);
      if (placed[link.from.index()] && placed[link.to.index()]) {
        links.push_back(added[id.index()]);
      }
    }
    if (!links.empty()) fabric.add_group(std::move(links));
  }
  return added;
}

void add_levels(const std::vector<Level>& outer, const std::string& block,
                std::vector<Level>& levels) {
  for (const Level& level : outer) {
    const bool is_taken = std::ranges::count(levels, level.name, &Level::name) > 0;
    levels.push_back(level);
    if (is_taken) levels.back().name = block + "_" + level.name;
  }
}

}  // namespace

BuiltTopology join(BuiltTopology block, const Joint& joint, std::optional<BuiltTopology> fabric) {
  assert(fabric || joint.blocks == 1);
  const std::size_t chips_per_block = block.places.chips.size();
  BuiltTopology built;
  JoinedRouter::Parts parts;
  parts.chips_per_block = static_cast<std::uint32_t>(chips_per_block);
  parts.links_per_block = static_cast<std::uint32_t>(block.fabric.links().size());
  parts.chips_per_host = joint.chips_per_host;
  parts.rails = joint.rails;
  parts.planes = joint.planes;

  add_blocks(block, joint, built);
  const bool slices = block.places.levels.front().kind == LevelKind::kTorusAxis;
  const LevelMembers blocks = slices ? LevelMembers::kSlice : LevelMembers::kNode;
  std::vector<Level> outer = {{.name = joint.block, .size = joint.blocks, .members = blocks}};
  if (fabric) {
    if (joint.chips_per_host > 1) {
      parts.exits = dynamic_cast<const HostExits*>(block.router.get());
    }
    const std::vector<NodeId> gateways =
        add_gateways(joint, chips_per_block, parts.exits,
                     block.fabric.nodes().size() - chips_per_block, built, parts.host_up);
    const std::size_t places = fabric->places.chips.size();
    assert(gateways.size() <= places);
    for (std::uint32_t plane = 0; plane < joint.planes; ++plane) {
      const std::size_t before = built.fabric.links().size();
      const std::string prefix = joint.planes == 1
                                     ? joint.fabric_prefix
                                     : fmt::format("{}plane{}.", joint.fabric_prefix, plane);
      const std::vector<LinkId> added =
          add_plane(fabric->fabric, gateways, places, prefix, built.fabric);
      if (plane > 0) continue;
      parts.fabric_link = added;
      parts.links_per_plane = static_cast<std::uint32_t>(built.fabric.links().size() - before);
    }
    const auto count = static_cast<std::uint32_t>(gateways.size());
    outer = levels_of_blocks(levels_of_first(fabric->places.levels, count), count / joint.blocks,
                             joint.block, blocks);
    parts.fabric = std::move(fabric->router);
  }
  parts.block = std::move(block.router);
  built.places.levels = std::move(block.places.levels);
  add_levels(outer, joint.block, built.places.levels);
  built.router = std::make_unique<JoinedRouter>(std::move(parts));
  return built;
}

}  // namespace stepsim
