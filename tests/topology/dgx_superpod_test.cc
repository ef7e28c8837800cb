#include "topology/kinds/switched/dgx_superpod.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "sim/base/quantity_text.h"
#include "tests/support/problems.h"
#include "tests/support/routes.h"
#include "topology/graph/bisection.h"
#include "topology/graph/graph_measures.h"

namespace stepsim {
namespace {

using namespace literals;
using Names = std::vector<std::string>;

constexpr int kGpus = 8;

std::uint32_t gpu(std::uint32_t node, std::uint32_t rail) {
  return kGpus * node + rail;
}

std::size_t count(const Fabric& fabric, NodeKind kind) {
  return static_cast<std::size_t>(
      std::ranges::count(fabric.nodes(), kind, [](const Node& node) { return node.kind; }));
}

// Three units of 4 nodes. A leaf has 4 uplinks; 24 leaves * 2 cables fit 64 ports, 24 * 4 do not:
// 2 spines.
DgxSuperPodSpec three_small_units() {
  return {.nodes = 12, .nodes_per_scalable_unit = 4};
}

Names level_names(int nodes) {
  Names names;
  const BuiltTopology pod = build(DgxSuperPodSpec{.nodes = nodes});
  for (const Level& level : pod.places.levels) {
    EXPECT_EQ(level.kind, LevelKind::kSwitched);
    names.push_back(level.name + " " + std::to_string(level.size));
  }
  return names;
}

TEST(DgxSuperPodTest, DerivesLeavesAndSpinesFromItsSize) {
  // A leaf has 32 uplinks; spines * 64 ports must take ceil(32 / spines) cables of every leaf.
  struct Row {
    int nodes, units, leaves, spines;
    Bandwidth leaf_spine;
  };
  const std::vector<Row> rows = {
      {2, 1, 8, 4, 400_GBps},    // cabled as a full unit
      {32, 1, 8, 4, 400_GBps},   // 8 leaves * 8 cables = 64
      {33, 2, 16, 8, 200_GBps},  // 16 * 4 = 64
      {64, 2, 16, 8, 200_GBps},
      {96, 3, 24, 16, 100_GBps},   // 24 * 2 = 48; 15 spines would need 24 * 3 = 72
      {128, 4, 32, 16, 100_GBps},  // 32 * 2 = 64
      {160, 5, 40, 32, 50_GBps},   // 40 * 1; 31 spines would need 40 * 2
      {256, 8, 64, 32, 50_GBps},   // 64 * 1 = 64
  };
  for (const Row& row : rows) {
    const RailFabricSize size = network_size({.nodes = row.nodes});
    EXPECT_EQ(size.scalable_units, row.units) << row.nodes;
    EXPECT_EQ(size.leaves, row.leaves) << row.nodes;
    EXPECT_EQ(size.spines, row.spines) << row.nodes;
    EXPECT_EQ(size.leaf_spine_bandwidth, row.leaf_spine) << row.nodes;
  }
}

TEST(DgxSuperPodTest, OversubscriptionTakesUplinksAndSpinesAway) {
  // 2:1 leaves 16 uplinks a leaf: 32 leaves * 2 cables = 64 ports with 8 spines; 100 GB/s a pair.
  const RailFabricSize half = network_size({.nodes = 128, .oversubscription = 2});
  EXPECT_EQ(half.spines, 8);
  EXPECT_EQ(half.leaf_spine_bandwidth, 100_GBps);
  // 1.25:1 is 25.6 uplinks: 26 ports, so 32 * 2 cables need 13 spines; 1280 GB/s over 13.
  const RailFabricSize broken = network_size({.nodes = 128, .oversubscription = 1.25});
  EXPECT_EQ(broken.spines, 13);
  EXPECT_DOUBLE_EQ(broken.leaf_spine_bandwidth.value(), 1280e9 / 13);
  // Spines given: the same uplink bandwidth, spread thinner.
  const RailFabricSize spread = network_size({.nodes = 128, .spines = 32});
  EXPECT_EQ(spread.spines, 32);
  EXPECT_EQ(spread.leaf_spine_bandwidth, 50_GBps);
}

TEST(DgxSuperPodTest, A1024GpuPodHasTheKnownParts) {
  const BuiltTopology pod = build(DgxSuperPodSpec{.nodes = 128});
  EXPECT_EQ(count(pod.fabric, NodeKind::kChip), 1024U);
  // 128 NVSwitches, 32 leaves, 16 spines; the published 560 counts 4 NVSwitch chips a node.
  EXPECT_EQ(count(pod.fabric, NodeKind::kSwitch), 128U + 32 + 16);
  // Two links a cable: one to the NVSwitch and one to the leaf for each GPU; 32 x 16 pairs.
  EXPECT_EQ(pod.fabric.links().size(), 2U * (1024 + 1024 + 32 * 16));
  EXPECT_TRUE(connected(pod.fabric));
}

TEST(DgxSuperPodTest, LinksHaveTheBandwidthAndLatencyOfTheirKind) {
  const BuiltTopology pod = build(DgxSuperPodSpec{.nodes = 64,
                                                  .nvlink_bandwidth = 300_GBps,
                                                  .nvlink_latency = 100ns,
                                                  .nic_bandwidth = 25_GBps,
                                                  .network_link_latency = 600ns});
  for (std::uint32_t l = 0; l < pod.fabric.links().size(); ++l) {
    const Link& link = pod.fabric.link(LinkId(l));
    const std::string name = pod.fabric.link_name(LinkId(l));
    const bool inside = name.find("nvswitch") != std::string::npos;
    const bool upper = name.find("spine") != std::string::npos;
    EXPECT_EQ(link.latency, inside ? Duration(100ns) : Duration(600ns)) << name;
    // 32 uplinks of 25 GB/s over 8 spines.
    EXPECT_EQ(link.bandwidth, inside ? 300_GBps : upper ? 100_GBps : 25_GBps) << name;
  }
}

TEST(DgxSuperPodTest, BisectionIsFullUpToTheLargestSize) {
  // One node: 4 GPUs * 450 GB/s. More: half of the cards, 50 GB/s each.
  EXPECT_EQ(bisection_bandwidth(build(DgxSuperPodSpec{}).fabric), 1800_GBps);
  EXPECT_EQ(bisection_bandwidth(build(DgxSuperPodSpec{.nodes = 2}).fabric), 400_GBps);
  EXPECT_EQ(bisection_bandwidth(build(DgxSuperPodSpec{.nodes = 32}).fabric), 6400_GBps);
  EXPECT_EQ(bisection_bandwidth(build(DgxSuperPodSpec{.nodes = 96}).fabric), 19200_GBps);
  EXPECT_EQ(bisection_bandwidth(build(DgxSuperPodSpec{.nodes = 128}).fabric), 25600_GBps);
  EXPECT_EQ(bisection_bandwidth(build(DgxSuperPodSpec{.nodes = 256}).fabric), 51200_GBps);
}

TEST(DgxSuperPodTest, AnOddNumberOfNodesIsCutThroughTheMiddleNode) {
  // 33 nodes are 132 GPUs a side: 132 cards * 50 GB/s, and in node 16, which has 4 GPUs on either
  // side, 4 * 450 GB/s over the NVSwitch.
  EXPECT_EQ(bisection_bandwidth(build(DgxSuperPodSpec{.nodes = 33}).fabric), 8400_GBps);
}

TEST(DgxSuperPodTest, AnyTwoGpusAreWithinFourHops) {
  EXPECT_EQ(diameter_in_hops(build(DgxSuperPodSpec{.nodes = 1}).fabric), 2U);
  EXPECT_EQ(diameter_in_hops(build(DgxSuperPodSpec{.nodes = 128}).fabric), 4U);
}

TEST(DgxSuperPodTest, OversubscriptionDividesTheBisection) {
  const DgxSuperPodSpec spec = {.nodes = 128, .oversubscription = 4};
  EXPECT_EQ(bisection_bandwidth(build(spec).fabric), 6400_GBps);  // 25.6 TB/s / 4
  // Inside one unit messages turn round in the leaf, above which nothing is missing.
  const DgxSuperPodSpec unit = {.nodes = 32, .oversubscription = 4};
  EXPECT_EQ(bisection_bandwidth(build(unit).fabric), 6400_GBps);
}

TEST(DgxSuperPodTest, RoutesStayOnTheRailAndInTheUnitWhereTheyCan) {
  const BuiltTopology pod = build(DgxSuperPodSpec{.nodes = 64});  // 8 spines
  EXPECT_EQ(route_names(pod, gpu(3, 1), gpu(3, 1)), Names{});
  EXPECT_EQ(route_names(pod, gpu(0, 0), gpu(0, 5)),
            (Names{"node0.gpu0>node0.nvswitch", "node0.nvswitch>node0.gpu5"}));
  EXPECT_EQ(route_names(pod, gpu(0, 3), gpu(31, 3)),
            (Names{"node0.gpu3>su0.leaf3", "su0.leaf3>node31.gpu3"}));
  // 45 mod 8 = 5.
  EXPECT_EQ(route_names(pod, gpu(31, 2), gpu(45, 2)),
            (Names{"node31.gpu2>su0.leaf2", "su0.leaf2>spine5", "spine5>su1.leaf2",
                   "su1.leaf2>node45.gpu2"}));
}

TEST(DgxSuperPodTest, PxnChangesRailOverNvlinkBeforeItLeavesTheNode) {
  const BuiltTopology pod = build(DgxSuperPodSpec{.nodes = 64});
  EXPECT_EQ(route_names(pod, gpu(0, 0), gpu(7, 3)),
            (Names{"node0.gpu0>node0.nvswitch", "node0.nvswitch>node0.gpu3", "node0.gpu3>su0.leaf3",
                   "su0.leaf3>node7.gpu3"}));
  EXPECT_EQ(route_names(pod, gpu(0, 0), gpu(45, 2)),
            (Names{"node0.gpu0>node0.nvswitch", "node0.nvswitch>node0.gpu2", "node0.gpu2>su0.leaf2",
                   "su0.leaf2>spine5", "spine5>su1.leaf2", "su1.leaf2>node45.gpu2"}));
}

TEST(DgxSuperPodTest, WithoutPxnRailsMeetInTheSpine) {
  const BuiltTopology pod = build(DgxSuperPodSpec{.nodes = 64, .cross_rail = CrossRail::kSpine});
  EXPECT_EQ(route_names(pod, gpu(0, 0), gpu(7, 3)),
            (Names{"node0.gpu0>su0.leaf0", "su0.leaf0>spine7", "spine7>su0.leaf3",
                   "su0.leaf3>node7.gpu3"}));
  EXPECT_EQ(route_names(pod, gpu(0, 0), gpu(45, 2)),
            (Names{"node0.gpu0>su0.leaf0", "su0.leaf0>spine5", "spine5>su1.leaf2",
                   "su1.leaf2>node45.gpu2"}));
  EXPECT_EQ(route_names(pod, gpu(0, 0), gpu(0, 1)).size(), 2U) << "never out of the node";
}

TEST(DgxSuperPodTest, EveryRouteIsAShortestPathExceptAPxnDetour) {
  for (const CrossRail cross_rail : {CrossRail::kPxn, CrossRail::kSpine}) {
    DgxSuperPodSpec spec = three_small_units();
    spec.cross_rail = cross_rail;
    const BuiltTopology pod = build(spec);
    const auto chips = static_cast<std::uint32_t>(pod.places.chips.size());
    ASSERT_EQ(chips, 96U);
    for (std::uint32_t from = 0; from < chips; ++from) {
      const auto hops = hops_from(pod.fabric, NodeId(from));
      for (std::uint32_t to = 0; to < chips; ++to) {
        expect_path(pod, from, to);
        // By spine, rails of different units meet in 4 links; over NVLink it takes 2 + 4.
        const bool detour =
            cross_rail == CrossRail::kPxn && from % 8 != to % 8 && from / 32 != to / 32;
        EXPECT_EQ(route(pod, from, to).size(), *hops[to] + (detour ? 2 : 0)) << from << " " << to;
      }
    }
  }
}

TEST(DgxSuperPodTest, TheFlowKeyChangesNothing) {
  const BuiltTopology pod = build(three_small_units());
  EXPECT_EQ(route(pod, gpu(0, 0), gpu(11, 3), 1), route(pod, gpu(0, 0), gpu(11, 3), 2));
}

TEST(DgxSuperPodTest, AShiftByOneUnitFillsNoLinkOverItsCapacity) {
  const BuiltTopology pod = build(DgxSuperPodSpec{.nodes = 128});
  std::vector<double> load(pod.fabric.links().size());
  for (std::uint32_t from = 0; from < 1024; ++from) {
    for (const LinkId link : route(pod, from, (from + 256) % 1024)) load[link.index()] += 50e9;
  }
  double highest = 0;
  for (std::uint32_t l = 0; l < load.size(); ++l) {
    const Link& link = pod.fabric.link(LinkId(l));
    highest = std::max(highest, load[l] / link.bandwidth.value());
  }
  // Full rate for every card, and the 32 nodes of a leaf fill its 16 * 2 uplinks evenly.
  EXPECT_DOUBLE_EQ(highest, 1.0);
}

TEST(DgxSuperPodTest, PlacesAreGpuNodeAndFullScalableUnits) {
  EXPECT_EQ(level_names(1), (Names{"gpu 8", "node 1"}));
  EXPECT_EQ(level_names(5), (Names{"gpu 8", "node 5"}));
  EXPECT_EQ(level_names(32), (Names{"gpu 8", "node 32"}));
  EXPECT_EQ(level_names(33), (Names{"gpu 8", "node 33"})) << "the second unit is not full";
  EXPECT_EQ(level_names(64), (Names{"gpu 8", "node 32", "scalable_unit 2"}));

  const BuiltTopology pod = build(DgxSuperPodSpec{.nodes = 64});
  const std::uint32_t chip = gpu(45, 2);
  EXPECT_EQ(pod.fabric.node(pod.places.chips[chip]).name, "node45.gpu2");
  EXPECT_EQ(pod.places.coordinate(chip, 0), 2U);
  EXPECT_EQ(pod.places.coordinate(chip, 1), 13U);  // 45 - 32
  EXPECT_EQ(pod.places.coordinate(chip, 2), 1U);
}

TEST(DgxSuperPodTest, OneNodeHasNoNetworkBetweenNodes) {
  const BuiltTopology node = build(DgxSuperPodSpec{.nodes = 1});
  EXPECT_EQ(node.fabric.nodes().size(), 8U + 1);
  EXPECT_EQ(node.fabric.links().size(), 2U * 8);
  EXPECT_EQ(network_size({.nodes = 1}).leaves, 0);
  EXPECT_EQ(route_names(node, 7, 0),
            (Names{"node0.gpu7>node0.nvswitch", "node0.nvswitch>node0.gpu0"}));
  // A rack of 72 GPUs on one switch is too many rails for a leaf-spine network, and needs none.
  EXPECT_TRUE(check(DgxSuperPodSpec{.nodes = 1, .gpus_per_node = 72}).empty());
  EXPECT_FALSE(check(DgxSuperPodSpec{.nodes = 2, .gpus_per_node = 72}).empty());
}

TEST(DgxSuperPodTest, UnitsNeedNotBeFull) {
  const BuiltTopology pod = build(DgxSuperPodSpec{.nodes = 33});
  EXPECT_TRUE(connected(pod.fabric));
  EXPECT_EQ(route_names(pod, gpu(0, 1), gpu(32, 1)),  // 32 mod 8 spines = 0
            (Names{"node0.gpu1>su0.leaf1", "su0.leaf1>spine0", "spine0>su1.leaf1",
                   "su1.leaf1>node32.gpu1"}));
  for (std::uint32_t to = 0; to < 33 * 8; ++to) {
    expect_path(pod, gpu(32, 7), to);
    expect_path(pod, to, gpu(32, 7));
  }
}

TEST(DgxSuperPodTest, Above2048GpusThereIsACoreTier) {
  // NVIDIA's reference architecture and the Scaling Book: 16 units, 128 leaves, 128 spines, 64
  // cores. A pod is 4 units (32 leaves on the lower 32 ports of a spine); the 4 * 32 uplinks of a
  // plane fill 2 cores of 64 ports, 16 cables a pair.
  const RailFabricSize size = network_size({.nodes = 512});
  EXPECT_EQ(size.scalable_units, 16);
  EXPECT_EQ(size.leaves, 128);
  EXPECT_EQ(size.pods, 4);
  EXPECT_EQ(size.spines, 128);
  EXPECT_EQ(size.cores, 64);
  EXPECT_EQ(size.leaf_spine_bandwidth, 50_GBps);
  EXPECT_EQ(size.spine_core_bandwidth, 800_GBps);
  EXPECT_EQ(network_size({.nodes = 256}).cores, 0);
  // 9 units: 3 pods, cabled as if full; 3 * 32 uplinks of a plane need 2 cores of 64 ports.
  EXPECT_EQ(network_size({.nodes = 257}).pods, 3);
  EXPECT_EQ(network_size({.nodes = 257}).cores, 64);
}

TEST(DgxSuperPodTest, A4096GpuPodRoutesThroughItsCores) {
  const BuiltTopology pod = build(DgxSuperPodSpec{.nodes = 512});
  EXPECT_EQ(pod.places.chips.size(), 4096U);
  EXPECT_EQ(count(pod.fabric, NodeKind::kSwitch), 512U + 128 + 128 + 64);
  EXPECT_TRUE(connected(pod.fabric));
  EXPECT_EQ(level_names(512), (Names{"gpu 8", "node 32", "scalable_unit 4", "pod 4"}));
  // Node 300 is in unit 9, pod 2: spine 300 mod 32 = 12, core 300 / 32 mod 2 = 1 of plane 12.
  EXPECT_EQ(route_names(pod, gpu(0, 0), gpu(300, 2)),
            (Names{"node0.gpu0>node0.nvswitch", "node0.nvswitch>node0.gpu2", "node0.gpu2>su0.leaf2",
                   "su0.leaf2>pod0.spine12", "pod0.spine12>core12.1", "core12.1>pod2.spine12",
                   "pod2.spine12>su9.leaf2", "su9.leaf2>node300.gpu2"}));
  for (std::uint32_t to = 0; to < 4096; to += 13) {
    expect_path(pod, gpu(17, 3), to);
    expect_path(pod, to, gpu(511, 7));
  }
  // Half of the cards, 50 GB/s each.
  EXPECT_EQ(bisection_bandwidth(pod.fabric), 102400_GBps);
}

TEST(DgxSuperPodTest, RefusesMoreThanThreeTiersCanReach) {
  // 64 pods, one a port of a core, of 4 units of 32 nodes.
  EXPECT_TRUE(check(DgxSuperPodSpec{.nodes = 8192}).empty());
  EXPECT_EQ(check(DgxSuperPodSpec{.nodes = 8193}),
            (std::vector<Problem>{
                {"nodes",
                 "must be at most 8192 (65536 GPUs): three tiers of switches of 64 ports reach "
                 "2048 leaves; is 8193"}}));
  EXPECT_EQ(check(DgxSuperPodSpec{.nodes = 512, .spines = 128}),
            (std::vector<Problem>{{"spines",
                                   "must be 1 to 32, one uplink of each leaf for every spine of "
                                   "its pod; is 128"}}));
}

TEST(DgxSuperPodTest, RefusesMoreSpinesThanALeafHasUplinks) {
  EXPECT_TRUE(check(DgxSuperPodSpec{.nodes = 128, .spines = 1}).empty());
  EXPECT_TRUE(check(DgxSuperPodSpec{.nodes = 128, .spines = 32}).empty());
  EXPECT_EQ(check(DgxSuperPodSpec{.nodes = 128, .spines = 33}),
            (std::vector<Problem>{
                {"spines", "must be 1 to 32, one uplink of each leaf for every spine; is 33"}}));
}

// 1,024 GPUs have 512 cards on each side. All 16 spines carry 512 cards of 50 GB/s from side to
// side: 25.6 TB/s. A leaf has 2 cables to a spine of 64 ports, so 8 spines leave it 16 uplinks of
// its 32, and half of the bisection; 4 spines a quarter.
TEST(DgxSuperPodTest, FewerSpinesTaperTheNetwork) {
  const auto bisection = [](std::optional<int> spines, double oversubscription = 1) {
    const DgxSuperPodSpec spec = {
        .nodes = 128, .spines = spines, .oversubscription = oversubscription};
    EXPECT_TRUE(check(spec).empty());
    return bisection_bandwidth(build(spec).fabric).value();
  };
  EXPECT_DOUBLE_EQ(bisection({}), 25.6e12);
  EXPECT_DOUBLE_EQ(bisection(16), 25.6e12);
  EXPECT_DOUBLE_EQ(bisection(32), 25.6e12);
  EXPECT_DOUBLE_EQ(bisection(15), 25.6e12 * 30 / 32);
  EXPECT_DOUBLE_EQ(bisection(8), 12.8e12);
  EXPECT_DOUBLE_EQ(bisection(4), 6.4e12);
  EXPECT_DOUBLE_EQ(bisection({}, 2), 12.8e12) << "2:1 by another name";
  EXPECT_DOUBLE_EQ(bisection(4, 2), 6.4e12) << "the narrower of the two counts";
}

// 4,096 GPUs: 4 pods of 32 leaves, whose spines have 32 ports for them. A leaf has one cable to
// each; 8 spines a pod instead of 32 leave a quarter of 102.4 TB/s.
TEST(DgxSuperPodTest, FewerSpinesTaperACoreTierToo) {
  const DgxSuperPodSpec full = {.nodes = 512};
  const DgxSuperPodSpec tapered = {.nodes = 512, .spines = 8};
  EXPECT_DOUBLE_EQ(bisection_bandwidth(build(full).fabric).value(), 102.4e12);
  EXPECT_DOUBLE_EQ(bisection_bandwidth(build(tapered).fabric).value(), 25.6e12);
  EXPECT_EQ(network_size(tapered).spines, 4 * 8);
  EXPECT_EQ(network_size(tapered).cores, 16) << "4 pods of 8 * 32 uplinks, 64 a core";
}

TEST(DgxSuperPodTest, RefusesAUnitThatLeavesNoPortsForUplinks) {
  EXPECT_TRUE(check(DgxSuperPodSpec{.nodes = 64, .nodes_per_scalable_unit = 32}).empty());
  EXPECT_EQ(check(DgxSuperPodSpec{.nodes = 66, .nodes_per_scalable_unit = 33}),
            (std::vector<Problem>{{"nodes_per_scalable_unit",
                                   "must leave a leaf of 64 ports room for its uplinks: at most 32 "
                                   "without oversubscription, is 33"}}));
  // 42 down and 42 / 2 = 21 up are 63 ports; 43 and 22 are 65.
  const DgxSuperPodSpec tapered = {
      .nodes = 8, .nodes_per_scalable_unit = 42, .oversubscription = 2};
  EXPECT_TRUE(check(tapered).empty());
  const DgxSuperPodSpec wider = {.nodes = 8, .nodes_per_scalable_unit = 43, .oversubscription = 2};
  EXPECT_FALSE(check(wider).empty());
  EXPECT_TRUE(check(DgxSuperPodSpec{.nodes = 32, .oversubscription = 32}).empty());
  EXPECT_FALSE(check(DgxSuperPodSpec{.nodes = 32, .oversubscription = 32.5}).empty());
}

TEST(DgxSuperPodTest, ReportsEveryProblemAtOnce) {
  const DgxSuperPodSpec spec = {.nodes = 0,
                                .gpus_per_node = 1025,
                                .nodes_per_scalable_unit = 0,
                                .nvlink_bandwidth = Bandwidth(0),
                                .nvlink_latency = -1ns,
                                .nic_bandwidth = Bandwidth(0),
                                .network_link_latency = -1ns,
                                .switch_ports = 1,
                                .spines = 0,
                                .oversubscription = 0.5};
  const std::string zero = "must be positive, is 0";
  const std::string negative = "must be at least 0, is -0.000000001000";
  expect_problems(check(spec), {{"nodes", "must be at least 1, is 0"},
                                {"gpus_per_node", "must be at most 1024, is 1025"},
                                {"nodes_per_scalable_unit", "must be at least 1, is 0"},
                                {"switch_ports", "must be at least 2, is 1"},
                                {"oversubscription", "must be at least 1, is 0.5"},
                                {"spines", "must be at least 1, is 0"},
                                {"nic_bandwidth", zero},
                                {"network_link_latency", negative},
                                {"nvlink_bandwidth", zero},
                                {"nvlink_latency", negative}});
}

}  // namespace
}  // namespace stepsim
