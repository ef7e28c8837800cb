#include "topology/kinds/switched/leaf_spine.h"

#include <gtest/gtest.h>

#include "tests/support/routes.h"
#include "topology/graph/bisection.h"

namespace stepsim {
namespace {

using namespace literals;
using Names = std::vector<std::string>;

LeafSpineSpec four_leaves() {
  return {.leaves = 4, .hosts_per_leaf = 16, .spines = 8, .host_bandwidth = 50_GBps};
}

TEST(LeafSpineTest, RoutesOverTheSpineOfTheDestination) {
  const BuiltTopology built = build(four_leaves());
  EXPECT_EQ(route_names(built, 0, 15), (Names{"chip0>leaf0", "leaf0>chip15"}));
  EXPECT_EQ(route_names(built, 0, 21),  // 21 mod 8 = 5
            (Names{"chip0>leaf0", "leaf0>spine5", "spine5>leaf1", "leaf1>chip21"}));
  for (std::uint32_t from = 0; from < 64; ++from) {
    for (std::uint32_t to = 0; to < 64; ++to) expect_path(built, from, to);
  }
}

TEST(LeafSpineTest, OversubscriptionNarrowsTheUplinks) {
  LeafSpineSpec spec = four_leaves();
  EXPECT_EQ(bisection_bandwidth(build(spec).fabric), 1600_GBps);  // 32 hosts * 50
  spec.oversubscription = 4;
  EXPECT_EQ(bisection_bandwidth(build(spec).fabric), 400_GBps);
  // 16 * 50 / 4 = 200 GB/s of uplinks over 8 spines.
  EXPECT_EQ(build(spec).fabric.links().back().bandwidth, 25_GBps);
}

TEST(LeafSpineTest, OneLeafNeedsNoSpine) {
  const BuiltTopology built =
      build(LeafSpineSpec{.leaves = 1, .hosts_per_leaf = 6, .host_bandwidth = 50_GBps});
  EXPECT_EQ(built.fabric.nodes().size(), 7U);
  EXPECT_EQ(route_names(built, 0, 5), (Names{"chip0>leaf0", "leaf0>chip5"}));
  EXPECT_EQ(built.places.levels.size(), 1U);
}

TEST(LeafSpineTest, ANvlinkDomainOf576GpusHasFullBisection) {
  // 288 GPUs * 900 GB/s.
  const LeafSpineSpec spec = {
      .leaves = 8, .hosts_per_leaf = 72, .spines = 18, .host_bandwidth = 900_GBps};
  EXPECT_EQ(bisection_bandwidth(build(spec).fabric), 259200_GBps);
}

TEST(LeafSpineTest, FitTakesAsManyLeavesAsNeeded) {
  LeafSpineSpec spec = {.hosts_per_leaf = 16, .spines = 2, .host_bandwidth = 50_GBps};
  EXPECT_FALSE(check(spec).empty());
  fit(spec, 33);
  EXPECT_EQ(spec.leaves, 3);
  EXPECT_TRUE(check(spec).empty());
}

TEST(LeafSpineTest, RefusesMorePortsThanTheSwitchesHave) {
  LeafSpineSpec spec = {.leaves = 24,
                        .hosts_per_leaf = 16,
                        .spines = 8,
                        .host_bandwidth = 50_GBps,
                        .switch_ports = 24};
  EXPECT_TRUE(check(spec).empty());
  spec.switch_ports = 23;
  EXPECT_EQ(
      check(spec),
      (std::vector<Problem>{
          {"hosts_per_leaf", "16 hosts and 8 spines need 24 ports of a leaf, a switch has 23"},
          {"leaves", "24 leaves need as many ports of a spine, a switch has 23"}}));
}

TEST(LeafSpineTest, ReportsEveryProblemAtOnce) {
  EXPECT_EQ(check(LeafSpineSpec{.leaves = 0,
                                .hosts_per_leaf = 0,
                                .spines = -1,
                                .oversubscription = 0.9,
                                .link_latency = -1ns,
                                .switch_ports = 0})
                .size(),
            7U);
  EXPECT_EQ(check(LeafSpineSpec{.leaves = 2, .spines = 0, .host_bandwidth = 1_GBps}),
            (std::vector<Problem>{{"spines", "must be at least 1 to join 2 leaves, is 0"}}));
}

}  // namespace
}  // namespace stepsim
