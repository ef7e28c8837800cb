#include "topology/kinds/switched/fat_tree.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/base/quantity_text.h"
#include "tests/support/problems.h"
#include "tests/support/routes.h"
#include "topology/graph/bisection.h"
#include "topology/graph/graph_measures.h"
#include "topology/graph/levels.h"

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
  EXPECT_TRUE(check(tree(160)).empty());
  EXPECT_EQ(check(tree(162)),
            (std::vector<Problem>{
                {"switch_ports", "makes 1062882 hosts, at most 1048576 are possible"}}));
  FatTreeSpec shared = tree(1024);
  fit(shared, 4096);
  EXPECT_TRUE(check(shared).empty()) << "nobody asks for all of its hosts";
  EXPECT_FALSE(check(tree(1026)).empty());
}

std::vector<std::string> names_of_route(const BuiltTopology& built, std::uint32_t from,
                                        std::uint32_t to, std::uint64_t key) {
  std::vector<LinkId> links;
  built.router->route(NodeId(from), NodeId(to), key, links);
  std::vector<std::string> names;
  for (const LinkId link : links) names.push_back(built.fabric.link_name(link));
  return names;
}

// What is built for some endpoints is the part of the whole tree that they use.
TEST(FatTreeTest, APartIsThatOfTheWholeTree) {
  for (const int tiers : {2, 3}) {
    for (const PathRule rule : {PathRule::kDestination, PathRule::kEcmp, PathRule::kAdaptive}) {
      FatTreeSpec spec = tree(8, tiers, 2);
      spec.routing.rule = rule;
      const BuiltTopology whole = build(spec);
      for (const std::uint32_t endpoints : {1U, 3U, 4U, 7U, 12U, 16U, 17U, 24U, 32U, 100U, 128U}) {
        if (endpoints > whole.places.chips.size()) continue;
        FatTreeSpec part_spec = spec;
        fit(part_spec, endpoints);
        const BuiltTopology part = build(part_spec);
        ASSERT_EQ(part.places.chips.size(), endpoints);
        EXPECT_LE(part.fabric.nodes().size(), whole.fabric.nodes().size());
        const auto levels = levels_of_first(whole.places.levels, endpoints);
        const auto of_part = levels_of_first(part.places.levels, endpoints);
        ASSERT_EQ(of_part.size(), levels.size()) << endpoints;
        for (std::size_t i = 0; i < levels.size(); ++i) {
          EXPECT_EQ(of_part[i].name, levels[i].name);
          EXPECT_EQ(of_part[i].size, levels[i].size);
        }
        for (std::uint32_t from = 0; from < endpoints; ++from) {
          const std::uint32_t to = (from * 7 + endpoints / 2) % endpoints;
          EXPECT_EQ(names_of_route(part, from, to, from), names_of_route(whole, from, to, from));
        }
      }
    }
  }
}

TEST(FatTreeTest, AFewEndpointsOfLargeSwitchesCostLittle) {
  FatTreeSpec spec = tree(1024);
  fit(spec, 4096);
  const BuiltTopology built = build(spec);
  EXPECT_EQ(built.fabric.nodes().size(), 4096U + 8 + 512);  // eight leaves, the spines of a pod
  EXPECT_EQ(built.fabric.links().size(), 2U * (4096 + 8 * 512));
}

// More than 128 ports: 524,288 hosts.
TEST(FatTreeTest, HasMoreThanHalfAMillionHosts) {
  FatTreeSpec spec = {.link_bandwidth = 50_GBps};
  fit(spec, 600'000);
  EXPECT_EQ(spec.switch_ports, 134);
  spec.routing.rule = PathRule::kAdaptive;
  const BuiltTopology built = build(spec);
  const std::uint32_t half = 67;
  ASSERT_EQ(built.places.chips.size(), 600'000U);
  EXPECT_EQ(names_of_route(built, 5, 599'999, 0).size(), 6U);
  EXPECT_EQ(names_of_route(built, 599'999, 599'990, 0).size(), 2U);
  const std::uint32_t last_pod = 599'999 / (half * half);
  EXPECT_EQ(names_of_route(built, 0, 599'999, 0).back(),
            "pod" + std::to_string(last_pod) + ".leaf" + std::to_string(599'999 / half % half) +
                ">chip599999");
}

}  // namespace
}  // namespace stepsim
