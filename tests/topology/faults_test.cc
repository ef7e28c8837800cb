#include "topology/faults.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "tests/support/routes.h"
#include "topology/composed.h"
#include "topology/graph/bisection.h"
#include "topology/graph/graph_measures.h"
#include "topology/kinds/switched/dgx_superpod.h"
#include "topology/kinds/switched/dragonfly.h"
#include "topology/kinds/switched/nvlink_domain.h"
#include "topology/kinds/torus/torus.h"
#include "topology/kinds/torus/tpu_slice.h"

namespace stepsim {
namespace {

using namespace literals;
using Names = std::vector<std::string>;

BuiltTopology ring_of(int chips) {
  return build(TorusSpec{.axes = {{.size = chips, .wraps = true}}, .link_bandwidth = 90_GBps});
}

BuiltTopology apply_checked(const Faults& faults, BuiltTopology built) {
  EXPECT_TRUE(check(faults, built).empty());
  return apply(faults, std::move(built));
}

std::map<std::string, Bandwidth> bandwidths(const BuiltTopology& built) {
  std::map<std::string, Bandwidth> all;
  for (std::uint32_t link = 0; link < built.fabric.links().size(); ++link) {
    all[built.fabric.link_name(LinkId(link))] = built.fabric.link(LinkId(link)).bandwidth;
  }
  return all;
}

TEST(FaultsTest, ASlowLinkIsRoutedOverAsBefore) {
  const BuiltTopology ring =
      apply_checked({.links = {{.link = "chip0-chip1", .capacity = 0.5}}}, ring_of(6));
  const auto all = bandwidths(ring);
  EXPECT_EQ(all.size(), 12U);
  EXPECT_EQ(all.at("chip0>chip1"), 45_GBps);
  EXPECT_EQ(all.at("chip1>chip0"), 45_GBps);
  EXPECT_EQ(all.at("chip1>chip2"), 90_GBps);
  EXPECT_EQ(route_names(ring, 0, 2), (Names{"chip0>chip1", "chip1>chip2"}));
  EXPECT_EQ(bisection_bandwidth(ring.fabric), 135_GBps) << "0>1 at 45 GB/s and 3>4";
}

TEST(FaultsTest, OneDirectionMayFailByItself) {
  const BuiltTopology ring =
      apply_checked({.links = {{.link = "chip0>chip1", .down = true}}}, ring_of(4));
  EXPECT_EQ(ring.fabric.links().size(), 7U);
  EXPECT_EQ(route_names(ring, 0, 1), (Names{"chip0>chip3", "chip3>chip2", "chip2>chip1"}));
  EXPECT_EQ(route_names(ring, 1, 0), (Names{"chip1>chip0"}));
}

// A ring of 6 without the cable 0-1 is a line: 1 2 3 4 5 0.
TEST(FaultsTest, RoutesThatAvoidTheFaultStayAndOthersGoRound) {
  const BuiltTopology ring =
      apply_checked({.links = {{.link = "chip1-chip0", .down = true}}}, ring_of(6));
  EXPECT_EQ(ring.fabric.links().size(), 10U);
  EXPECT_EQ(route(ring, 0, 1).size(), 5U);
  EXPECT_EQ(route_names(ring, 5, 1),
            (Names{"chip5>chip4", "chip4>chip3", "chip3>chip2", "chip2>chip1"}));
  EXPECT_EQ(route_names(ring, 1, 3), (Names{"chip1>chip2", "chip2>chip3"}));
  EXPECT_EQ(route_names(ring, 2, 5), (Names{"chip2>chip3", "chip3>chip4", "chip4>chip5"}))
      << "half way round, plus: as before";
  for (std::uint32_t from = 0; from < 6; ++from) {
    for (std::uint32_t to = 0; to < 6; ++to) expect_path(ring, from, to);
  }
}

// Between 0, 1, 2 and 3, 4, 5 a ring has the cables 2-3 and 5-0.
TEST(FaultsTest, NoMeasureCountsALinkThatIsDown) {
  EXPECT_EQ(bisection_bandwidth(ring_of(6).fabric), 180_GBps);
  const BuiltTopology ring =
      apply_checked({.links = {{.link = "chip2-chip3", .down = true}}}, ring_of(6));
  EXPECT_EQ(bisection_bandwidth(ring.fabric), 90_GBps);
  EXPECT_EQ(diameter_in_hops(ring.fabric), 5U) << "a line";
}

TEST(FaultsTest, GoesRoundAFailedRailOverTheOtherOnes) {
  const BuiltTopology pod =
      apply_checked({.links = {{.link = "node0.gpu3-su0.leaf3", .down = true}}},
                    build(DgxSuperPodSpec{.nodes = 4}));
  const Names names = route_names(pod, 3, 8 + 3);
  // Its own card is gone, so it goes over NVLink to another GPU of the node, over that GPU's rail,
  // and over NVLink again.
  ASSERT_EQ(names.size(), 6U);
  EXPECT_EQ(names.front(), "node0.gpu3>node0.nvswitch");
  EXPECT_EQ(names.back(), "node1.nvswitch>node1.gpu3");
  expect_path(pod, 3, 11);
  EXPECT_EQ(route_names(pod, 2, 8 + 2), (Names{"node0.gpu2>su0.leaf2", "su0.leaf2>node1.gpu2"}));
}

// Chips 0.0.0 and 1.0.0 have a host in common, two hops away. The way round a square of the torus
// has three hops.
TEST(FaultsTest, GoesRoundOverHostsOnlyWhereNothingElseLeadsOn) {
  const TpuSliceSpec pair = {
      .generation = TpuGeneration::kV5p, .shape = {2, 2, 1}, .hosts = TpuHosts{}};
  const LinkFault x = {.link = "chip0.0.0-chip1.0.0", .down = true};
  EXPECT_EQ(route_names(apply_checked({{x}}, build(pair)), 0, 1),
            (Names{"chip0.0.0>chip0.1.0", "chip0.1.0>chip1.1.0", "chip1.1.0>chip1.0.0"}));
  const LinkFault y = {.link = "chip0.0.0-chip0.1.0", .down = true};
  EXPECT_EQ(route_names(apply_checked({{x, y}}, build(pair)), 0, 1),
            (Names{"chip0.0.0>host0.0.0", "host0.0.0>chip1.0.0"}));
}

// Returns the flows over each link if node numbers are shifted by `shift` on every rail.
std::map<std::string, int> loads_of_shift(const BuiltTopology& built, std::uint32_t shift) {
  std::map<std::string, int> loads;
  const auto chips = static_cast<std::uint32_t>(built.places.chips.size());
  for (std::uint32_t from = 0; from < chips; ++from) {
    for (const std::string& link : route_names(built, from, (from + 8 * shift) % chips)) {
      ++loads[link];
    }
  }
  return loads;
}

int most_loaded(const std::map<std::string, int>& loads, std::string_view from,
                std::string_view to) {
  int most = 0;
  for (const auto& [link, load] : loads) {
    const std::size_t arrow = link.find('>');
    if (link.find(from) >= arrow || link.find(to, arrow) == std::string::npos) continue;
    most = std::max(most, load);
  }
  return most;
}

// Two units of 32 nodes, 8 spines. The 32 flows of a leaf into the other unit put 4 on each uplink,
// and 5 or 6 on each of the 6 remaining ones. Before, the flows that lost their spine all took
// spine 0: 4 + 8.
TEST(FaultsTest, StaticRoutesAreSpreadOverTheSpinesThatAreLeft) {
  const auto pod = [](PathRule rule) {
    return build(DgxSuperPodSpec{.nodes = 64, .routing = {.rule = rule}});
  };
  const Faults two_spines = {
      .links = {{.link = "spine2-*", .down = true}, {.link = "spine5-*", .down = true}}};
  const auto whole = loads_of_shift(pod(PathRule::kDestination), 32);
  EXPECT_EQ(most_loaded(whole, "leaf", "spine"), 4);
  const auto left = loads_of_shift(apply_checked(two_spines, pod(PathRule::kDestination)), 32);
  EXPECT_EQ(most_loaded(left, "leaf", "spine"), 6);
  EXPECT_EQ(most_loaded(left, "spine", "leaf"), 6);
  EXPECT_EQ(most_loaded(left, "spine2>", ""), 0);
  // With a hash, the most loaded of 16 x 6 uplinks has a few more than the mean of 5.3, not 12.
  const auto hashed = loads_of_shift(apply_checked(two_spines, pod(PathRule::kEcmp)), 32);
  EXPECT_LT(most_loaded(hashed, "leaf", "spine"), 16);
}

// Only the leaf that lost an uplink, and senders to it, choose among fewer spines.
TEST(FaultsTest, OtherLeavesKeepTheirRoutes) {
  const BuiltTopology whole = build(DgxSuperPodSpec{.nodes = 64});
  const BuiltTopology faulty = apply_checked(
      {.links = {{.link = "su0.leaf3-spine2", .down = true}}}, build(DgxSuperPodSpec{.nodes = 64}));
  EXPECT_EQ(route_names(faulty, 0, 8 * 34), route_names(whole, 0, 8 * 34));
  const Names before = {"node0.gpu3>su0.leaf3", "su0.leaf3>spine2", "spine2>su1.leaf3",
                        "su1.leaf3>node34.gpu3"};
  ASSERT_EQ(route_names(whole, 3, 8 * 34 + 3), before) << "34 mod 8";
  // Spines 0, 1, 3, 4, 5, 6, 7 are left: number 34 mod 7 = 6 of them.
  EXPECT_EQ(route_names(faulty, 3, 8 * 34 + 3)[1], "su0.leaf3>spine7");
  EXPECT_EQ(loads_of_shift(faulty, 32).count("su0.leaf3>spine2"), 0U);
}

// 4,096 GPUs have a core tier: a spine that lost its cores in one pod is passed over.
TEST(FaultsTest, BetweenPodsSpinesWithoutCoresAreLeftOut) {
  const BuiltTopology pods =
      apply_checked({.links = {{.link = "pod0.spine*-core3.*", .down = true},
                               {.link = "pod1.spine4-core4.0", .down = true}}},
                    build(DgxSuperPodSpec{.nodes = 512}));
  const auto loads = loads_of_shift(pods, 128);
  EXPECT_EQ(most_loaded(loads, "pod0.spine3>", "core"), 0);
  EXPECT_EQ(most_loaded(loads, "pod1.spine4>", "core4.0"), 0);
  EXPECT_GT(most_loaded(loads, "pod1.spine4>", "core4.1"), 0);
  // 32 flows of each leaf over 31 spines.
  EXPECT_EQ(most_loaded(loads, "leaf", "spine"), 2);
  for (std::uint32_t to = 1024; to < 4096; to += 97) expect_path(pods, 3, to);
}

TEST(FaultsTest, SwitchesPlanesAndGlobalCablesAreChosenAmongThoseLeft) {
  const NvlinkDomainSpec ports = {.gpus = 8, .links_per_switch = {5, 4, 4, 5}};
  const BuiltTopology node =
      apply_checked({.links = {{.link = "gpu*-nvswitch0", .down = true}}}, build(ports));
  // 13 links are left, 4 and 4 and 5 of them: destination modulo 13.
  EXPECT_EQ(route_names(node, 7, 0), (Names{"gpu7>nvswitch1", "nvswitch1>gpu0"}));
  EXPECT_EQ(route_names(node, 7, 5), (Names{"gpu7>nvswitch2", "nvswitch2>gpu5"}));

  const ComposedSpec dual = {.domain = NvlinkDomainSpec{},
                             .tiers = {{.count = 4, .fabric = RailFabricSpec{}, .planes = 2}}};
  const BuiltTopology planes =
      apply_checked({.links = {{.link = "*-plane0.*", .down = true}}}, build(dual));
  for (std::uint32_t to = 8; to < 32; ++to) {
    EXPECT_EQ(route_names(planes, to % 8, to).size(), 2U) << "by the other plane, not over NVLink";
  }

  const DragonflySpec two_groups = {.hosts_per_router = 1,
                                    .routers_per_group = 4,
                                    .global_links_per_router = 1,
                                    .groups = 2,
                                    .host_bandwidth = 50_GBps,
                                    .local_bandwidth = 50_GBps,
                                    .global_bandwidth = 50_GBps};
  const BuiltTopology dragonfly = build(two_groups);
  const Names before = route_names(dragonfly, 0, 4);  // router 4 takes cable 4 mod 4 = 0
  ASSERT_EQ(before.size(), 3U);
  const BuiltTopology cut =
      apply_checked({.links = {{.link = before[1], .down = true}}}, build(two_groups));
  // Cables 1, 2 and 3 are left: 4 mod 3 = 1 is cable 2, of router 2.
  const Names after = route_names(cut, 0, 4);
  ASSERT_EQ(after.size(), 5U);
  EXPECT_NE(after[2].find("router2>"), std::string::npos) << after[2];
}

TEST(FaultsTest, AWholePodIsRoutedRoundAFault) {
  const BuiltTopology pod = apply_checked(
      {.links = {{.link = "chip0.0.0-chip1.0.0", .down = true}}},
      build(TorusSpec{.axes = {{16, true}, {20, true}, {28, true}}, .link_bandwidth = 90_GBps}));
  EXPECT_EQ(pod.fabric.links().size(), 53758U);
  // One step aside, along, and back.
  EXPECT_EQ(route(pod, 0, 1).size(), 3U);
  for (std::uint32_t to = 1; to < 8960; to += 97) expect_path(pod, 0, to);
}

TEST(FaultsTest, PatternsNameManyLinks) {
  const BuiltTopology pod = build(DgxSuperPodSpec{.nodes = 4});
  const auto all =
      bandwidths(apply_checked({.links = {{.link = "node*.gpu0>su0.leaf0", .capacity = 0.25}}},
                               build(DgxSuperPodSpec{.nodes = 4})));
  int slow = 0;
  for (const auto& [name, bandwidth] : all) slow += bandwidth == 12.5e9 * Bandwidth(1) ? 1 : 0;
  EXPECT_EQ(slow, 4) << "one a node, upwards only";
  EXPECT_EQ(all.at("node3.gpu0>su0.leaf0"), Bandwidth(12.5e9));
  EXPECT_EQ(all.at("su0.leaf0>node3.gpu0"), 50_GBps);
}

TEST(FaultsTest, TheWorstFaultOfALinkCounts) {
  const LinkFault half = {.link = "chip*", .capacity = 0.5};
  const LinkFault tenth = {.link = "chip2>chip3", .capacity = 0.1};
  for (const Faults& faults : {Faults{{half, tenth}}, Faults{{tenth, half}}}) {
    Faults both_ways = faults;
    for (LinkFault& fault : both_ways.links) {
      if (fault.link == "chip*") fault.link = "chip*-chip*";
    }
    const auto all = bandwidths(apply_checked(both_ways, ring_of(4)));
    EXPECT_EQ(all.at("chip2>chip3"), Bandwidth(9e9));
    EXPECT_EQ(all.at("chip3>chip2"), 45_GBps);
  }
}

TEST(FaultsTest, NoFaultsChangeNothing) {
  const BuiltTopology ring = apply_checked({}, ring_of(4));
  EXPECT_EQ(ring.fabric.links().size(), 8U);
  EXPECT_EQ(route_names(ring, 0, 3), (Names{"chip0>chip3"}));
}

TEST(FaultsTest, RefusesToCutOffAChip) {
  EXPECT_EQ(check({.links = {{.link = "chip2-*", .down = true}}}, ring_of(5)),
            (std::vector<Problem>{
                {"links", "must leave every chip a path to all others; chip2 is cut off"}}));
  EXPECT_EQ(check({.links = {{.link = "chip2>*", .down = true}}}, ring_of(5)),
            (std::vector<Problem>{
                {"links", "must leave every chip a path to all others; chip2 is cut off"}}))
      << "it hears the others, but they don't hear it";
  EXPECT_EQ(check({.links = {{.link = "*", .down = true}}}, ring_of(8)).size(), 1U)
      << "no direction in it: \"*\" is any link both ways";
}

TEST(FaultsTest, ReportsEveryProblemAtOnce) {
  const Faults faults = {.links = {{.link = "chip0-chip2", .down = true},
                                   {.link = "chip0>chip1"},
                                   {.link = "chip0>chip1", .capacity = 0.5, .down = true},
                                   {.link = "chip0>chip1", .capacity = 0.0},
                                   {.link = "chip0>chip1", .capacity = 1.5}}};
  EXPECT_EQ(
      check(faults, ring_of(4)),
      (std::vector<Problem>{
          {"links[0].link",
           "names no link, is \"chip0-chip2\"; links are named as in \"chip0>chip1\""},
          {"links[1].capacity", "must be given, or else down"},
          {"links[2].capacity", "must not be given for a link that is down"},
          {"links[3].capacity", "must be over 0 and at most 1, is 0; a link without any is down"},
          {"links[4].capacity",
           "must be over 0 and at most 1, is 1.5; a link without any is down"}}));
}

}  // namespace
}  // namespace stepsim
