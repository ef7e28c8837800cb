#include "topology/kinds/fat_tree.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/base/quantity_text.h"
#include "tests/support/problems.h"
#include "tests/support/routes.h"
#include "topology/graph/graph_measures.h"

namespace stepsim {
namespace {

using namespace literals;
using Names = std::vector<std::string>;

FatTreeSpec tree(int ports, int tiers = 3, double taper = 1) {
  return {.switch_ports = ports, .tiers = tiers, .taper = taper, .link_bandwidth = 50_GBps};
}

TEST(FatTreeTest, HasTheKnownCounts) {
  // k^3 / 4 hosts, k pods of k switches, (k / 2)^2 cores; three tiers of k^3 / 4 cables.
  for (const int k : {2, 4, 8, 16}) {
    const BuiltTopology built = build(tree(k));
    const auto ports = static_cast<std::size_t>(k);
    const std::size_t hosts = ports * ports * ports / 4;
    EXPECT_EQ(built.places.chips.size(), hosts);
    EXPECT_EQ(built.fabric.nodes().size(), hosts + ports * ports + ports * ports / 4);
    EXPECT_EQ(built.fabric.links().size(), 2 * 3 * hosts);
  }
  // k leaves, k / 2 spines, k^2 / 2 hosts.
  const BuiltTopology flat = build(tree(8, 2));
  EXPECT_EQ(flat.fabric.nodes().size(), 32U + 8 + 4);
  EXPECT_EQ(flat.fabric.links().size(), 2U * 2 * 32);
}

TEST(FatTreeTest, NoSwitchUsesMoreThanItsPorts) {
  const BuiltTopology built = build(tree(8));
  std::vector<int> ports(built.fabric.nodes().size());
  for (const Link& link : built.fabric.links()) ++ports[link.from.index()];
  for (std::size_t node = built.places.chips.size(); node < ports.size(); ++node) {
    EXPECT_EQ(ports[node], 8) << built.fabric.nodes()[node].name;
  }
}

TEST(FatTreeTest, BisectionIsFullWithoutTaper) {
  for (const int k : {4, 8, 16}) {
    const double hosts = k * k * k / 4;
    EXPECT_EQ(bisection_bandwidth(build(tree(k)).fabric), hosts / 2 * 50_GBps);
    EXPECT_EQ(bisection_bandwidth(build(tree(k, 3, 2)).fabric), hosts / 4 * 50_GBps);
  }
  EXPECT_EQ(bisection_bandwidth(build(tree(8, 2)).fabric), 16.0 * 50_GBps);
  EXPECT_EQ(bisection_bandwidth(build(tree(8, 2, 4)).fabric), 4.0 * 50_GBps);
}

TEST(FatTreeTest, EveryRouteIsAShortestPath) {
  for (FatTreeSpec spec : {tree(4), tree(6), tree(6, 2), tree(2)}) {
    for (const PathRule rule : {PathRule::kDestination, PathRule::kEcmp}) {
      spec.routing.rule = rule;
      const BuiltTopology built = build(spec);
      const auto chips = static_cast<std::uint32_t>(built.places.chips.size());
      for (std::uint32_t from = 0; from < chips; ++from) {
        const auto hops = hops_from(built.fabric, NodeId(from));
        for (std::uint32_t to = 0; to < chips; ++to) {
          expect_path(built, from, to, 3);
          EXPECT_EQ(route(built, from, to, 3).size(), *hops[to]);
        }
      }
    }
  }
}

TEST(FatTreeTest, EcmpSpreadsFlowKeysOverAllCores) {
  FatTreeSpec spec = tree(8);
  spec.routing = {.rule = PathRule::kEcmp, .seed = 1};
  const BuiltTopology built = build(spec);
  std::set<LinkId> into_cores;
  for (std::uint64_t key = 0; key < 400; ++key) into_cores.insert(route(built, 0, 127, key)[2]);
  EXPECT_EQ(into_cores.size(), 16U);
  EXPECT_EQ(route(built, 0, 127, 5), route(built, 0, 127, 5)) << "and is repeatable";
  FatTreeSpec other = spec;
  other.routing.seed = 2;
  const BuiltTopology reseeded = build(other);
  int changed = 0;
  for (std::uint64_t key = 0; key < 100; ++key) {
    changed += route(built, 0, 127, key) != route(reseeded, 0, 127, key) ? 1 : 0;
  }
  EXPECT_GT(changed, 80) << "15 of 16 in the mean";
}

TEST(FatTreeTest, PlacesAreChipLeafAndPod) {
  const Places places = build(tree(8)).places;
  ASSERT_EQ(places.levels.size(), 3U);
  const Names names = {"chip", "leaf", "pod"};
  const std::vector<std::uint32_t> sizes = {4, 4, 8};
  for (std::size_t level = 0; level < 3; ++level) {
    EXPECT_EQ(places.levels[level].name, names[level]);
    EXPECT_EQ(places.levels[level].size, sizes[level]);
  }
}

TEST(FatTreeTest, FitTakesTheSmallestSwitches) {
  for (const auto& [hosts, ports] : std::vector<std::pair<std::uint32_t, int>>{
           {1, 2}, {2, 2}, {3, 4}, {16, 4}, {17, 6}, {1024, 16}, {1025, 18}}) {
    FatTreeSpec spec = {.link_bandwidth = 50_GBps};
    fit(spec, hosts);
    EXPECT_EQ(spec.switch_ports, ports) << hosts;
  }
  FatTreeSpec given = tree(8);
  fit(given, 5000);
  EXPECT_EQ(given.switch_ports, 8) << "what is given stays";
}

TEST(FatTreeTest, ReportsEveryProblemAtOnce) {
  expect_problems(
      check(FatTreeSpec{.switch_ports = 7, .tiers = 4, .taper = 0.5, .link_latency = -1ns}),
      {{"switch_ports", "must be even, is 7"},
       {"tiers", "must be at most 3, is 4"},
       {"taper", "must be at least 1, is 0.5"},
       {"link_bandwidth", "must be positive, is 0"},
       {"link_latency", "must be at least 0, is -0.000000001000"}});
  EXPECT_EQ(
      check(FatTreeSpec{.link_bandwidth = 1_GBps}),
      (std::vector<Problem>{{"switch_ports", "must be given where the network stands alone"}}));
  EXPECT_FALSE(check(tree(130)).empty());
  EXPECT_TRUE(check(tree(128)).empty());
}

}  // namespace
}  // namespace stepsim
