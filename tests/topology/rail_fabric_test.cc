// dgx_superpod_test.cc tests sizes, routes and limits. This file tests what only shows without a
// SuperPod's nodes.
#include "topology/kinds/switched/rail_fabric.h"

#include <gtest/gtest.h>

#include "tests/support/routes.h"
#include "topology/graph/bisection.h"

namespace stepsim {
namespace {

using namespace literals;
using Names = std::vector<std::string>;

TEST(RailFabricTest, CardsOfANodeSitOnDifferentLeaves) {
  const BuiltTopology built = build(RailFabricSpec{.nodes = 64});
  EXPECT_EQ(built.places.chips.size(), 512U);
  EXPECT_EQ(route_names(built, 8 * 3 + 1, 8 * 5 + 1),
            (Names{"chip25>su0.leaf1", "su0.leaf1>chip41"}));
  EXPECT_EQ(
      route_names(built, 8 * 3 + 1, 8 * 5 + 2),  // node 5 mod 8 spines
      (Names{"chip25>su0.leaf1", "su0.leaf1>spine5", "spine5>su0.leaf2", "su0.leaf2>chip42"}));
  EXPECT_EQ(built.places.levels[0].name, "rail");
}

TEST(RailFabricTest, BisectionOfThePublishedSizes) {
  // 1,024 cards: 25.6 TB/s each way; with cores as without.
  EXPECT_EQ(bisection_bandwidth(build(RailFabricSpec{.nodes = 128}).fabric), 25600_GBps);
  EXPECT_EQ(bisection_bandwidth(build(RailFabricSpec{.nodes = 512}).fabric), 102400_GBps);
  EXPECT_EQ(bisection_bandwidth(build(RailFabricSpec{.nodes = 512, .oversubscription = 2}).fabric),
            51200_GBps);
}

TEST(RailFabricTest, NoSwitchTakesMoreCablesThanItHasPorts) {
  for (const int nodes : {40, 128, 256, 300, 512, 1000}) {
    const BuiltTopology built = build(RailFabricSpec{.nodes = nodes});
    std::vector<double> cables(built.fabric.nodes().size());
    for (const Link& link : built.fabric.links()) {
      cables[link.from.index()] += link.bandwidth.value() / 50e9;
    }
    for (std::size_t node = built.places.chips.size(); node < cables.size(); ++node) {
      EXPECT_LE(cables[node], 64.0) << built.fabric.nodes()[node].name << " of " << nodes;
    }
  }
}

TEST(RailFabricTest, EcmpSpreadsOverSpinesAndCores) {
  const BuiltTopology built =
      build(RailFabricSpec{.nodes = 512, .routing = {.rule = PathRule::kEcmp}});
  std::set<LinkId> into_cores;
  for (std::uint64_t key = 0; key < 2000; ++key) {
    expect_path(built, 0, 4088, key);
    into_cores.insert(route(built, 0, 4088, key)[2]);
  }
  EXPECT_EQ(into_cores.size(), 64U) << "32 spines, 2 cores above each";
}

TEST(RailFabricTest, FitTakesAsManyNodesAsNeeded) {
  RailFabricSpec spec = {};
  EXPECT_EQ(check(spec),
            (std::vector<Problem>{{"nodes", "must be given where the network stands alone"}}));
  fit(spec, 65);
  EXPECT_EQ(spec.nodes, 9);
}

}  // namespace
}  // namespace stepsim
