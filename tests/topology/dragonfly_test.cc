#include "topology/kinds/switched/dragonfly.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/routes.h"
#include "topology/graph/bisection.h"
#include "topology/graph/graph_measures.h"

namespace stepsim {
namespace {

using namespace literals;
using Names = std::vector<std::string>;

// p = 2, a = 4, h = 2: the figure of Kim et al. has 9 groups, 36 routers, 72 hosts.
DragonflySpec dragonfly(int groups, DragonflyRouting routing = DragonflyRouting::kMinimal) {
  return {.hosts_per_router = 2,
          .routers_per_group = 4,
          .global_links_per_router = 2,
          .groups = groups,
          .host_bandwidth = 10_GBps,
          .local_bandwidth = 20_GBps,
          .global_bandwidth = 5_GBps,
          .local_latency = 1us,
          .global_latency = 2us,
          .routing = routing,
          .routing_seed = 1};
}

TEST(DragonflyTest, HasTheKnownCounts) {
  const BuiltTopology built = build(dragonfly(9));
  EXPECT_EQ(built.places.chips.size(), 72U);
  EXPECT_EQ(built.fabric.nodes().size(), 72U + 36);
  // 72 hosts, 9 * 6 local pairs, 36 pairs of groups.
  EXPECT_EQ(built.fabric.links().size(), 2U * (72 + 54 + 36));
  EXPECT_EQ(diameter_in_hops(built.fabric), 5U) << "host, local, global, local, host";
  std::vector<int> ports(built.fabric.nodes().size());
  for (const Link& link : built.fabric.links()) ++ports[link.from.index()];
  for (std::size_t node = 72; node < ports.size(); ++node) EXPECT_EQ(ports[node], 2 + 3 + 2);
}

TEST(DragonflyTest, MinimalRoutesHaveOneGlobalLinkAndAtMostTwoLocal) {
  for (const int groups : {2, 3, 5, 9}) {
    const BuiltTopology built = build(dragonfly(groups));
    const auto chips = static_cast<std::uint32_t>(built.places.chips.size());
    for (std::uint32_t from = 0; from < chips; ++from) {
      for (std::uint32_t to = 0; to < chips; ++to) {
        expect_path(built, from, to);
        int global = 0;
        for (const LinkId link : route(built, from, to)) {
          global += built.fabric.link(link).latency == Duration(2us) ? 1 : 0;
        }
        EXPECT_EQ(global, from / 8 == to / 8 ? 0 : 1);
        EXPECT_LE(route(built, from, to).size(), 5U);
      }
    }
  }
}

TEST(DragonflyTest, RoutesByName) {
  const BuiltTopology built = build(dragonfly(9));
  EXPECT_EQ(route_names(built, 0, 1), (Names{"chip0>group0.router0", "group0.router0>chip1"}));
  EXPECT_EQ(
      route_names(built, 0, 7),
      (Names{"chip0>group0.router0", "group0.router0>group0.router3", "group0.router3>chip7"}));
  // Group 5 is number 4 of the others of group 0: router 4 / 2 = 2. Group 0 is number 0 of group 5.
  EXPECT_EQ(route_names(built, 0, 5 * 8 + 7),
            (Names{"chip0>group0.router0", "group0.router0>group0.router2",
                   "group0.router2>group5.router0", "group5.router0>group5.router3",
                   "group5.router3>chip47"}));
}

TEST(DragonflyTest, ValiantGoesThroughAllOtherGroups) {
  const BuiltTopology built = build(dragonfly(9, DragonflyRouting::kValiant));
  std::set<std::string> detours;
  for (std::uint64_t key = 0; key < 200; ++key) {
    expect_path(built, 0, 40, key);
    int global = 0;
    std::string detour;
    for (const LinkId link : route(built, 0, 40, key)) {
      if (built.fabric.link(link).latency != Duration(2us)) continue;
      if (++global == 1) detour = built.fabric.node(built.fabric.link(link).to).name.substr(0, 6);
    }
    EXPECT_EQ(global, 2);
    detours.insert(detour);
  }
  EXPECT_EQ(detours, (std::set<std::string>{"group1", "group2", "group3", "group4", "group6",
                                            "group7", "group8"}));
  EXPECT_EQ(route(built, 0, 7).size(), 3U) << "minimal within a group";
}

TEST(DragonflyTest, ValiantSpreadsTheWorstCase) {
  // All hosts of each group write to the next group: minimally over one cable of the pair.
  const auto highest_load = [](DragonflyRouting routing) {
    const BuiltTopology built = build(dragonfly(9, routing));
    std::vector<int> load(built.fabric.links().size());
    for (std::uint32_t from = 0; from < 72; ++from) {
      for (std::uint64_t key = 0; key < 100; ++key) {
        for (const LinkId link : route(built, from, (from + 8) % 72, key)) {
          if (built.fabric.link(link).latency == Duration(2us)) ++load[link.index()];
        }
      }
    }
    return *std::ranges::max_element(load);
  };
  EXPECT_EQ(highest_load(DragonflyRouting::kMinimal), 8 * 100);
  // 7,200 flows of two global hops over 72 links: 200 in the mean.
  EXPECT_LT(highest_load(DragonflyRouting::kValiant), 300);
}

TEST(DragonflyTest, BisectionIsTheCablesBetweenHalfOfTheGroups) {
  // 4 groups: floor(8 / 3) = 2 cables a pair, 2 * 2 pairs across, 5 GB/s each.
  EXPECT_EQ(bisection_bandwidth(build(dragonfly(4)).fabric), 40_GBps);
  // 8 groups: one cable a pair, 4 * 4 pairs.
  EXPECT_EQ(bisection_bandwidth(build(dragonfly(8)).fabric), 80_GBps);
  // 2 groups: all 8 global links.
  EXPECT_EQ(bisection_bandwidth(build(dragonfly(2)).fabric), 40_GBps);
}

TEST(DragonflyTest, FitTakesAsManyGroupsAsNeeded) {
  DragonflySpec spec = dragonfly(9);
  spec.groups.reset();
  fit(spec, 17);
  EXPECT_EQ(spec.groups, 3);
  spec.groups.reset();
  fit(spec, 3);
  EXPECT_EQ(spec.groups, 2);
}

TEST(DragonflyTest, ReportsEveryProblemAtOnce) {
  EXPECT_TRUE(check(dragonfly(9)).empty());
  EXPECT_EQ(check(dragonfly(10)),
            (std::vector<Problem>{{"groups",
                                   "must be 2 to 9 (a group has 8 global links, and needs one to "
                                   "every other group), is 10"}}));
  DragonflySpec spec = dragonfly(9);
  spec.switch_ports = 6;
  EXPECT_EQ(
      check(spec),
      (std::vector<Problem>{
          {"switch_ports", "must be at least 7 (2 hosts, 3 local and 2 global links), is 6"}}));
  DragonflySpec huge = dragonfly(512);
  huge.hosts_per_router = 1;
  huge.routers_per_group = 512;
  EXPECT_EQ(check(huge).size(), 1U) << "2^27 local links";
  huge.routers_per_group = 256;
  EXPECT_TRUE(check(huge).empty()) << "2^25";
  EXPECT_EQ(check(DragonflySpec{.hosts_per_router = 0,
                                .routers_per_group = 0,
                                .global_links_per_router = 0,
                                .groups = 1,
                                .local_latency = -1ns,
                                .global_latency = -1ns})
                .size(),
            9U);
}

}  // namespace
}  // namespace stepsim
