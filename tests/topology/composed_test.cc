#include "topology/composed.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/routes.h"
#include "topology/graph/bisection.h"
#include "topology/graph/graph_measures.h"

namespace stepsim {
namespace {

using namespace literals;
using Names = std::vector<std::string>;

Names level_names(const BuiltTopology& built) {
  Names names;
  for (const Level& level : built.places.levels) {
    names.push_back(level.name + " " + std::to_string(level.size));
  }
  return names;
}

TorusSpec cube() {
  const TorusAxis ring = {.size = 4, .wraps = true};
  return {.axes = {ring, ring, ring}, .link_bandwidth = 90_GBps, .link_latency = 1us};
}

// Slices of 64 chips, 16 hosts with a card of 25 GB/s each.
ComposedSpec slices(int count) {
  return {
      .domain = cube(),
      .tiers = {
          {.name = "slice",
           .count = count,
           .fabric = LeafSpineSpec{.hosts_per_leaf = 16, .spines = 4, .host_bandwidth = 25_GBps},
           .chips_per_host = 4,
           .host_bandwidth = 16_GBps}}};
}

// 2 pods of 4 nodes of 8.
ComposedSpec pods() {
  return {.domain = NvlinkDomainSpec{},
          .tiers = {
              {.name = "node", .count = 4, .fabric = RailFabricSpec{.nodes_per_scalable_unit = 4}},
              {.name = "pod",
               .count = 2,
               .fabric = LeafSpineSpec{.hosts_per_leaf = 4,
                                       .spines = 2,
                                       .host_bandwidth = 25_GBps,
                                       .oversubscription = 2},
               .chips_per_host = 8,
               .host_bandwidth = 60_GBps}}};
}

TEST(ComposedTest, ASuperPodByHandIsTheSuperPod) {
  const BuiltTopology preset = build(DgxSuperPodSpec{.nodes = 64});
  const BuiltTopology by_hand = build(ComposedSpec{
      .domain = NvlinkDomainSpec{},
      .tiers = {{.name = "node", .count = 64, .fabric = RailFabricSpec{.nodes = 64}}}});
  ASSERT_EQ(by_hand.fabric.nodes().size(), preset.fabric.nodes().size());
  ASSERT_EQ(by_hand.fabric.links().size(), preset.fabric.links().size());
  for (std::uint32_t link = 0; link < preset.fabric.links().size(); ++link) {
    ASSERT_EQ(by_hand.fabric.link_name(LinkId(link)), preset.fabric.link_name(LinkId(link)));
  }
  for (std::uint32_t to = 0; to < 512; ++to) EXPECT_EQ(route(by_hand, 9, to), route(preset, 9, to));
  EXPECT_EQ(level_names(by_hand), level_names(preset));
}

TEST(ComposedTest, SlicesMeetInTheDataCentreNetwork) {
  const BuiltTopology built = build(slices(3));
  EXPECT_TRUE(check(slices(3)).empty());
  EXPECT_EQ(built.places.chips.size(), 192U);
  EXPECT_EQ(level_names(built), (Names{"x 4", "y 4", "z 4", "slice 3"}));
  EXPECT_TRUE(built.places.levels[0].wraps);
  EXPECT_EQ(route_names(built, 64, 66),
            (Names{"slice1.chip0.0.0>slice1.chip1.0.0", "slice1.chip1.0.0>slice1.chip2.0.0"}));
  // Chip 5 of slice 0 has host 1; chip 130 is chip 2 of slice 2, its host is number 32: spine 0.
  EXPECT_EQ(route_names(built, 5, 130),
            (Names{"slice0.chip1.1.0>slice0.host1", "slice0.host1>leaf0", "leaf0>spine0",
                   "spine0>leaf2", "leaf2>slice2.host0", "slice2.host0>slice2.chip2.0.0"}));
  for (std::uint32_t from = 0; from < 192; from += 5) {
    for (std::uint32_t to = 0; to < 192; ++to) expect_path(built, from, to);
  }
}

TEST(ComposedTest, TwoSlicesAreJoinedByTheCardsOfTheirHosts) {
  // 16 hosts * 25 GB/s = 6.25 GB/s a chip.
  EXPECT_EQ(bisection_bandwidth(build(slices(2)).fabric), 400_GBps);
}

TEST(ComposedTest, PodsOfNodesHaveThreeWays) {
  const BuiltTopology built = build(pods());
  EXPECT_TRUE(check(pods()).empty());
  EXPECT_EQ(level_names(built), (Names{"gpu 8", "node 4", "pod 2"}));
  EXPECT_EQ(route_names(built, 32, 33),
            (Names{"pod1.node0.gpu0>pod1.node0.nvswitch", "pod1.node0.nvswitch>pod1.node0.gpu1"}));
  EXPECT_EQ(route_names(built, 32, 41),
            (Names{"pod1.node0.gpu0>pod1.node0.nvswitch", "pod1.node0.nvswitch>pod1.node0.gpu1",
                   "pod1.node0.gpu1>pod1.su0.leaf1", "pod1.su0.leaf1>pod1.node1.gpu1"}));
  EXPECT_EQ(route_names(built, 0, 41),  // host 5: spine 1
            (Names{"pod0.node0.gpu0>pod0.host0", "pod0.host0>pod_network.leaf0",
                   "pod_network.leaf0>pod_network.spine1", "pod_network.spine1>pod_network.leaf1",
                   "pod_network.leaf1>pod1.host1", "pod1.host1>pod1.node1.gpu1"}));
  for (std::uint32_t from = 0; from < 64; ++from) {
    for (std::uint32_t to = 0; to < 64; ++to) expect_path(built, from, to);
  }
}

TEST(ComposedTest, WithoutPxnRailsMeetInTheFabric) {
  ComposedSpec spec = pods();
  spec.tiers[0].cross_rail = CrossRail::kSpine;
  EXPECT_EQ(route_names(build(spec), 0, 9),
            (Names{"pod0.node0.gpu0>pod0.su0.leaf0", "pod0.su0.leaf0>pod0.spine0",
                   "pod0.spine0>pod0.su0.leaf1", "pod0.su0.leaf1>pod0.node1.gpu1"}));
}

TEST(ComposedTest, PlanesShareTheFlows) {
  ComposedSpec spec = {
      .domain = NvlinkDomainSpec{},
      .tiers = {{.name = "node", .count = 8, .fabric = RailFabricSpec{}, .planes = 2}}};
  const BuiltTopology dual = build(spec);
  spec.tiers[0].planes = 1;
  const BuiltTopology single = build(spec);
  const std::size_t in_nodes = 2U * 64;
  EXPECT_EQ(dual.fabric.links().size() - in_nodes, 2 * (single.fabric.links().size() - in_nodes));
  int first_plane = 0;
  for (std::uint64_t key = 0; key < 1000; ++key) {
    expect_path(dual, 0, 8, key);
    const LinkId card = route(dual, 0, 8, key).front();
    first_plane += dual.fabric.link_name(card) == "node0.gpu0>plane0.su0.leaf0" ? 1 : 0;
  }
  EXPECT_NEAR(first_plane, 500, 80);
}

TEST(ComposedTest, AFabricMayHavePlacesToSpare) {
  ComposedSpec spec = {
      .domain = NvlinkDomainSpec{},
      .tiers = {{.count = 3, .fabric = FatTreeSpec{.switch_ports = 8, .link_bandwidth = 50_GBps}}}};
  const BuiltTopology built = build(spec);
  EXPECT_EQ(built.places.chips.size(), 24U);
  EXPECT_EQ(level_names(built), (Names{"gpu 8", "node 3"}));
  EXPECT_TRUE(connected(built.fabric));
  for (std::uint32_t from = 0; from < 24; ++from) {
    for (std::uint32_t to = 0; to < 24; ++to) expect_path(built, from, to);
  }
}

TEST(ComposedTest, NodesMayStandInATorus) {
  const BuiltTopology built = build(
      ComposedSpec{.domain = PcieBoxSpec{.gpus = 4, .gpus_per_switch = 4, .sockets = 1},
                   .tiers = {{.count = 12,
                              .fabric = TorusSpec{.axes = {{.size = 4, .wraps = true}, {.size = 3}},
                                                  .link_bandwidth = 25_GBps},
                              .chips_per_host = 4,
                              .host_bandwidth = 32_GBps}}});
  EXPECT_EQ(level_names(built), (Names{"gpu 4", "x 4", "y 3"}));
  for (std::uint32_t from = 0; from < 48; ++from) {
    for (std::uint32_t to = 0; to < 48; ++to) expect_path(built, from, to);
  }
}

// A GPU in a PCIe box has one slot: two boxes of eight, a card each, at the first socket.
TEST(ComposedTest, AGpuReachesTheCardOfItsBoxOverItsOnlySlot) {
  const BuiltTopology built = build(ComposedSpec{
      .domain = PcieBoxSpec{.socket_bandwidth = 16_GBps},
      .tiers = {{.name = "node",
                 .count = 2,
                 .fabric = LeafSpineSpec{.hosts_per_leaf = 2, .host_bandwidth = 25_GBps},
                 .chips_per_host = 8,
                 .host_bandwidth = 32_GBps}}});
  for (std::uint32_t chip = 0; chip < 16; ++chip) {
    const auto slots = std::ranges::count_if(built.fabric.links(), [&](const Link& link) {
      return link.from == built.places.chips[chip];
    });
    EXPECT_EQ(slots, 1) << chip;
  }
  EXPECT_EQ(
      route_names(built, 0, 8),
      (Names{"node0.gpu0>node0.switch0", "node0.switch0>node0.socket0", "node0.socket0>node0.host0",
             "node0.host0>leaf0", "leaf0>node1.host0", "node1.host0>node1.socket0",
             "node1.socket0>node1.switch0", "node1.switch0>node1.gpu0"}));
  EXPECT_EQ(route_names(built, 7, 12),
            (Names{"node0.gpu7>node0.switch3", "node0.switch3>node0.socket1",
                   "node0.socket1>node0.socket0", "node0.socket0>node0.host0", "node0.host0>leaf0",
                   "leaf0>node1.host0", "node1.host0>node1.socket0", "node1.socket0>node1.socket1",
                   "node1.socket1>node1.switch2", "node1.switch2>node1.gpu4"}));
  for (std::uint32_t from = 0; from < 16; ++from) {
    for (std::uint32_t to = 0; to < 16; ++to) expect_path(built, from, to);
  }
}

TEST(ComposedTest, LevelsOfTheSameNameAreToldApart) {
  const LeafSpineSpec domain = {
      .leaves = 2, .hosts_per_leaf = 4, .spines = 1, .host_bandwidth = 900_GBps};
  const LeafSpineSpec fabric = {
      .leaves = 2, .hosts_per_leaf = 16, .spines = 1, .host_bandwidth = 50_GBps};
  EXPECT_EQ(level_names(build(ComposedSpec{
                .domain = domain, .tiers = {{.name = "node", .count = 4, .fabric = fabric}}})),
            (Names{"chip 4", "leaf 2", "node 2", "node_leaf 2"}));
}

TEST(ComposedTest, RefusesAFabricThatIsTooSmall) {
  ComposedSpec spec = pods();
  spec.tiers[0].fabric = RailFabricSpec{.nodes = 3, .nodes_per_scalable_unit = 4};
  EXPECT_EQ(
      check(spec),
      (std::vector<Problem>{
          {"tiers[0].fabric", "rail_fabric has 24 places, but 4 of node with 8 each need 32"}}));
}

TEST(ComposedTest, AFabricWithJustEnoughPlacesWillDo) {
  ComposedSpec spec = {.domain = NvlinkDomainSpec{}, .tiers = {{.count = 4}}};
  const auto problems_with = [&spec](int places) {
    spec.tiers[0].fabric =
        LeafSpineSpec{.leaves = 1, .hosts_per_leaf = places, .host_bandwidth = 50_GBps};
    return check(spec).size();
  };
  EXPECT_EQ(problems_with(32), 0U);
  EXPECT_EQ(problems_with(31), 1U);
}

TEST(ComposedTest, RefusesHostsAndRailsThatDoNotDivide) {
  ComposedSpec spec = slices(2);
  spec.tiers[0].chips_per_host = 5;
  EXPECT_EQ(check(spec), (std::vector<Problem>{{"tiers[0].chips_per_host",
                                                "must divide the 64 chips of a slice, is 5"}}));
  ComposedSpec rails = pods();
  rails.tiers[0].fabric = RailFabricSpec{.rails = 3, .nodes_per_scalable_unit = 4};
  EXPECT_EQ(check(rails),
            (std::vector<Problem>{
                {"tiers[0].fabric",
                 "rail_fabric has 3 rails, which must divide the 8 gateways of a node"}}));
}

TEST(ComposedTest, ReportsEveryProblemAtOnce) {
  ComposedSpec spec = {.domain = NvlinkDomainSpec{.gpus = 0},
                       .tiers = {{.name = "", .count = 0, .fabric = FatTreeSpec{.switch_ports = 5}},
                                 {.name = "pod", .count = 2, .chips_per_host = 4, .planes = 0},
                                 {.name = "pod", .fabric = PcieBoxSpec{.gpus = 7}}}};
  std::vector<std::string> fields;
  for (const Problem& problem : check(spec)) fields.push_back(problem.field);
  std::ranges::sort(fields);
  EXPECT_EQ(fields, (Names{"domain.nvlink_domain.gpus", "tiers[0].count",
                           "tiers[0].fabric.fat_tree.link_bandwidth",
                           "tiers[0].fabric.fat_tree.switch_ports", "tiers[0].name",
                           "tiers[1].fabric", "tiers[1].host_bandwidth", "tiers[1].planes",
                           "tiers[2].fabric.pcie_box.gpus", "tiers[2].name"}));
}

TEST(ComposedTest, RefusesMoreThanTwoToTheTwentyChips) {
  ComposedSpec spec = {
      .domain = NvlinkDomainSpec{},
      .tiers = {{.count = 1 << 18, .fabric = LeafSpineSpec{.host_bandwidth = 1_GBps}}}};
  EXPECT_EQ(check(spec).front(),
            (Problem{"tiers[0].count", "makes 2097152 chips, at most 1048576 are possible"}));
}

}  // namespace
}  // namespace stepsim
