#include "topology/kinds/switched/dragonfly.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "topology/graph/levels.h"
#include "topology/graph/path_choice.h"
#include "topology/kinds/spec_checks.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostDragonflyChips = 1 << 20;
constexpr std::int64_t kMostLocalLinks = 1 << 25;

// DragonflyShape holds the numbers of a spec and the rule for cabling.
struct DragonflyShape {
  std::uint32_t hosts = 1;         // per router
  std::uint32_t routers = 1;       // per group
  std::uint32_t global_links = 1;  // per router
  std::uint32_t groups = 2;

  std::uint32_t others() const { return groups - 1; }
  std::uint32_t cables() const { return routers * global_links / others(); }  // between two groups

  // Returns the position of group `other` among the groups other than `group`.
  static std::uint32_t position(std::uint32_t group, std::uint32_t other) {
    return other < group ? other : other - 1;
  }

  // Returns the router, numbered in its group, of cable `cable` from `group` to `other`.
  std::uint32_t router_of(std::uint32_t group, std::uint32_t other, std::uint32_t cable) const {
    return (cable * others() + position(group, other)) / global_links;
  }
};

DragonflyShape shape_of(const DragonflySpec& spec) {
  return {.hosts = static_cast<std::uint32_t>(spec.hosts_per_router),
          .routers = static_cast<std::uint32_t>(spec.routers_per_group),
          .global_links = static_cast<std::uint32_t>(spec.global_links_per_router),
          .groups = static_cast<std::uint32_t>(*spec.groups)};
}

struct DragonflyLinks {
  std::vector<LinkId> host_up;  // by chip, the downward link has the next id
  std::vector<LinkId> local;    // (group * routers + from) * routers + to
  std::vector<LinkId> global;   // (from group * groups + to group) * cables + cable
};

class DragonflyRouter : public Router {
 public:
  DragonflyRouter(const DragonflyShape& shape, DragonflyLinks links, DragonflyRouting routing,
                  std::uint64_t seed)
      : shape_(shape), links_(std::move(links)), routing_(routing), seed_(seed) {}

  void route(NodeId from, NodeId to, std::uint64_t flow_key,
             std::vector<LinkId>& out) const override {
    append({.from = from.index(), .to = to.index(), .key = flow_key}, nullptr, out);
  }

  void route_around(NodeId from, NodeId to, std::uint64_t flow_key, const IsDown& is_down,
                    std::vector<LinkId>& out) const override {
    append({.from = from.index(), .to = to.index(), .key = flow_key}, &is_down, out);
  }

 private:
  // `is_down` is null if all links are up.
  void append(const Flow& flow, const IsDown* is_down, std::vector<LinkId>& out) const {
    if (flow.from == flow.to) return;
    const std::uint32_t destination = flow.to / shape_.hosts;  // router, numbered over all groups
    const std::uint32_t group_from = flow.from / shape_.hosts / shape_.routers;
    const std::uint32_t group_to = destination / shape_.routers;
    std::uint32_t at = flow.from / shape_.hosts % shape_.routers;  // router, numbered in its group

    out.push_back(links_.host_up[flow.from]);
    std::uint32_t group = group_from;
    if (group_from != group_to) {
      if (const auto detour = detour_of(flow, group_from, group_to)) {
        at = cross(group, *detour, at, destination, is_down, out);
        group = *detour;
      }
      at = cross(group, group_to, at, destination, is_down, out);
    }
    move(group_to, at, destination % shape_.routers, out);
    out.push_back(LinkId(links_.host_up[flow.to].index() + 1));
  }

  std::optional<std::uint32_t> detour_of(const Flow& flow, std::uint32_t group_from,
                                         std::uint32_t group_to) const {
    if (routing_ == DragonflyRouting::kMinimal || shape_.groups < 3) return std::nullopt;
    auto detour = static_cast<std::uint32_t>(hash_of(seed_, flow) % (shape_.groups - 2));
    if (detour >= std::min(group_from, group_to)) ++detour;
    if (detour >= std::max(group_from, group_to)) ++detour;
    return detour;
  }

  void move(std::uint32_t group, std::uint32_t at, std::uint32_t router,
            std::vector<LinkId>& out) const {
    if (at == router) return;
    out.push_back(links_.local[(group * shape_.routers + at) * shape_.routers + router]);
  }

  // Crosses from router `at` of one group into another. Returns the router of arrival.
  std::uint32_t cross(std::uint32_t group, std::uint32_t other, std::uint32_t at,
                      std::uint32_t destination, const IsDown* is_down,
                      std::vector<LinkId>& out) const {
    const std::uint32_t cable = cable_for(group, other, destination, is_down);
    move(group, at, shape_.router_of(group, other, cable), out);
    out.push_back(global_link(group, other, cable));
    return shape_.router_of(other, group, cable);
  }

  LinkId global_link(std::uint32_t group, std::uint32_t other, std::uint32_t cable) const {
    return links_.global[(group * shape_.groups + other) * shape_.cables() + cable];
  }

  // Returns one of the cables between two groups, among those that are up if there are any.
  std::uint32_t cable_for(std::uint32_t group, std::uint32_t other, std::uint32_t destination,
                          const IsDown* is_down) const {
    std::vector<std::uint32_t> open;
    for (std::uint32_t cable = 0; is_down != nullptr && cable < shape_.cables(); ++cable) {
      if (!(*is_down)(global_link(group, other, cable))) open.push_back(cable);
    }
    if (open.empty()) return destination % shape_.cables();
    return open[destination % open.size()];
  }

  DragonflyShape shape_;
  DragonflyLinks links_;
  DragonflyRouting routing_;
  std::uint64_t seed_;
};

DragonflyLinks connect(const DragonflySpec& spec, const DragonflyShape& shape,
                       const std::vector<NodeId>& routers, Fabric& fabric) {
  DragonflyLinks links;
  for (std::uint32_t chip = 0; chip < routers.size() * shape.hosts; ++chip) {
    links.host_up.push_back(fabric.connect(NodeId(chip), routers[chip / shape.hosts],
                                           spec.host_bandwidth, spec.local_latency));
  }
  links.local.resize(routers.size() * shape.routers);
  links.global.resize(std::size_t{shape.groups} * shape.groups * shape.cables());
  for (std::uint32_t group = 0; group < shape.groups; ++group) {
    const std::uint32_t first = group * shape.routers;
    for (std::uint32_t a = 0; a < shape.routers; ++a) {
      for (std::uint32_t b = a + 1; b < shape.routers; ++b) {
        const LinkId link = fabric.connect(routers[first + a], routers[first + b],
                                           spec.local_bandwidth, spec.local_latency);
        links.local[(first + a) * shape.routers + b] = link;
        links.local[(first + b) * shape.routers + a] = LinkId(link.index() + 1);
      }
    }
    for (std::uint32_t other = group + 1; other < shape.groups; ++other) {
      for (std::uint32_t cable = 0; cable < shape.cables(); ++cable) {
        const LinkId link =
            fabric.connect(routers[first + shape.router_of(group, other, cable)],
                           routers[other * shape.routers + shape.router_of(other, group, cable)],
                           spec.global_bandwidth, spec.global_latency);
        links.global[(group * shape.groups + other) * shape.cables() + cable] = link;
        links.global[(other * shape.groups + group) * shape.cables() + cable] =
            LinkId(link.index() + 1);
      }
    }
  }
  return links;
}

// REQUIRES: the spec's own numbers are in range.
void check_shape(const DragonflySpec& spec, SpecChecks& checks) {
  const int most_groups = spec.routers_per_group * spec.global_links_per_router + 1;
  if (*spec.groups > most_groups) {
    checks.add("groups", fmt::format("must be 2 to {} (a group has {} global links, and needs one "
                                     "to every other group), is {}",
                                     most_groups, most_groups - 1, *spec.groups));
  }
  const std::int64_t chips =
      std::int64_t{spec.hosts_per_router} * spec.routers_per_group * *spec.groups;
  if (chips > kMostDragonflyChips) {
    checks.add("groups", fmt::format("must hold at most {} hosts, {} groups of {} routers of {} "
                                     "hosts are too many",
                                     kMostDragonflyChips, *spec.groups, spec.routers_per_group,
                                     spec.hosts_per_router));
  }
  const std::int64_t local_links =
      std::int64_t{spec.routers_per_group} * spec.routers_per_group * *spec.groups;
  if (local_links > kMostLocalLinks) {
    checks.add(
        "routers_per_group",
        fmt::format("makes {} links between the routers of {} groups, at most {} are possible",
                    local_links, *spec.groups, kMostLocalLinks));
  }
  const int ports =
      spec.hosts_per_router + spec.routers_per_group - 1 + spec.global_links_per_router;
  if (spec.switch_ports && ports > *spec.switch_ports) {
    checks.add("switch_ports", fmt::format("must be at least {} ({} hosts, {} local and {} global "
                                           "links), is {}",
                                           ports, spec.hosts_per_router, spec.routers_per_group - 1,
                                           spec.global_links_per_router, *spec.switch_ports));
  }
}

}  // namespace

void fit(DragonflySpec& spec, std::uint32_t endpoints) {
  if (spec.groups || spec.hosts_per_router < 1 || spec.routers_per_group < 1) return;
  const std::uint32_t per_group = static_cast<std::uint32_t>(spec.hosts_per_router) *
                                  static_cast<std::uint32_t>(spec.routers_per_group);
  spec.groups = std::max(2, static_cast<int>((endpoints - 1) / per_group) + 1);
}

std::vector<Problem> check(const DragonflySpec& spec) {
  SpecChecks checks(dragonfly_fields(), spec);
  if (!spec.groups) checks.add("groups", "must be given where the network stands alone");
  if (checks.found_none()) check_shape(spec, checks);
  return checks.problems();
}

BuiltTopology build(const DragonflySpec& spec) {
  assert(check(spec).empty());
  const DragonflyShape shape = shape_of(spec);
  BuiltTopology built;
  for (std::uint32_t chip = 0; chip < shape.groups * shape.routers * shape.hosts; ++chip) {
    built.places.chips.push_back(built.fabric.add(NodeKind::kChip, fmt::format("chip{}", chip)));
  }
  std::vector<NodeId> routers;
  for (std::uint32_t router = 0; router < shape.groups * shape.routers; ++router) {
    routers.push_back(built.fabric.add(
        NodeKind::kSwitch,
        fmt::format("group{}.router{}", router / shape.routers, router % shape.routers)));
  }
  DragonflyLinks links = connect(spec, shape, routers, built.fabric);
  built.places.levels =
      levels_of_first({{.name = "chip", .size = shape.hosts, .members = LevelMembers::kNode},
                       {.name = "router", .size = shape.routers, .members = LevelMembers::kLeaf},
                       {.name = "group", .size = shape.groups, .members = LevelMembers::kPod}},
                      static_cast<std::uint32_t>(built.places.chips.size()));
  built.router =
      std::make_unique<DragonflyRouter>(shape, std::move(links), spec.routing, spec.routing_seed);
  return built;
}

}  // namespace stepsim
