// Which links are groups with adaptive routing, and how groups appear in larger clusters.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/routes.h"
#include "topology/composed.h"
#include "topology/graph/level_bandwidth.h"
#include "topology/kinds/switched/dgx_superpod.h"
#include "topology/kinds/switched/fat_tree.h"

namespace stepsim {
namespace {

using namespace literals;

constexpr PathChoice kAdaptive{.rule = PathRule::kAdaptive};

// Returns the ends of the links in the group of a route's link, "a>b" with numbers cut off.
std::set<std::string> kinds(const BuiltTopology& built, LinkId link) {
  std::set<std::string> names;
  const auto group = built.fabric.group_of(link);
  if (!group) return names;
  for (const LinkId other : built.fabric.group(*group).links) {
    std::string name;
    for (const char c : built.fabric.link_name(other)) {
      if (c < '0' || c > '9') name += c;
    }
    names.insert(name);
  }
  return names;
}

std::vector<std::size_t> sizes(const BuiltTopology& built, std::uint32_t from, std::uint32_t to) {
  std::vector<std::size_t> sizes;
  for (const LinkId link : route(built, from, to)) {
    const auto group = built.fabric.group_of(link);
    sizes.push_back(group ? built.fabric.group(*group).links.size() : 1);
  }
  return sizes;
}

using Sizes = std::vector<std::size_t>;

TEST(AdaptiveGroupsTest, AFatTreeHasOneForTheUplinksOfALeafAndOfAPod) {
  const BuiltTopology built = build(
      FatTreeSpec{.switch_ports = 4, .tiers = 3, .link_bandwidth = 1_GBps, .routing = kAdaptive});
  EXPECT_EQ(built.fabric.groups().size(), 2u * 8 + 2u * 4) << "8 leaves and 4 pods, up and down";
  EXPECT_EQ(sizes(built, 0, 1), (Sizes{1, 1})) << "one leaf";
  EXPECT_EQ(sizes(built, 0, 2), (Sizes{1, 2, 2, 1})) << "one pod";
  EXPECT_EQ(sizes(built, 0, 4), (Sizes{1, 2, 4, 4, 2, 1})) << "two spines with two cores each";
  const std::vector<LinkId> links = route(built, 0, 4);
  EXPECT_EQ(kinds(built, links[2]), (std::set<std::string>{"pod.spine>core."}));
  // A packet at a spine has two cores; it comes down from any of them in one way.
  const auto up = *built.fabric.group_of(links[2]);
  const auto down = *built.fabric.group_of(links[3]);
  for (const LinkId link : built.fabric.group(up).links) {
    EXPECT_EQ(built.fabric.alternatives(up, built.fabric.link(link).from).size(), 2u);
    EXPECT_EQ(built.fabric.alternatives(down, built.fabric.link(link).to).size(), 1u);
  }
}

TEST(AdaptiveGroupsTest, AreNotThereOnStaticRoutes) {
  EXPECT_TRUE(
      build(FatTreeSpec{.switch_ports = 4, .link_bandwidth = 1_GBps}).fabric.groups().empty());
}

// 4,096 GPUs: 128 leaves of 32 spines; 4 pods whose spines have two cores each.
TEST(AdaptiveGroupsTest, OfASuperPodLieBehindItsNodes) {
  const DgxSuperPodSpec spec{.nodes = 512, .routing = kAdaptive};
  const BuiltTopology built = build(spec);
  EXPECT_EQ(built.fabric.groups().size(), 2u * 128 + 2u * 4);
  EXPECT_EQ(sizes(built, 0, 8), (Sizes{1, 1}));
  EXPECT_EQ(sizes(built, 0, 8 * 32), (Sizes{1, 32, 32, 1}));
  EXPECT_EQ(sizes(built, 0, 8 * 256 + 3), (Sizes{1, 1, 1, 32, 64, 64, 32, 1}))
      << "by NVLink to the rail of the destination first";
  const std::vector<LinkId> links = route(built, 0, 8 * 32);
  EXPECT_EQ(kinds(built, links[1]), (std::set<std::string>{"su.leaf>pod.spine"}));
  EXPECT_EQ(built.fabric.width(built.fabric.spread(links[1])), 32 * 50_GBps);
  EXPECT_EQ(built.fabric.bandwidth(built.fabric.spread(links[1]).link), 50_GBps);
}

TEST(AdaptiveGroupsTest, AreThereInEveryPlaneAndBlock) {
  const LeafSpineSpec inner{.leaves = 2,
                            .hosts_per_leaf = 2,
                            .spines = 2,
                            .host_bandwidth = 2_GBps,
                            .routing = kAdaptive};
  const LeafSpineSpec outer{
      .hosts_per_leaf = 4, .spines = 2, .host_bandwidth = 1_GBps, .routing = kAdaptive};
  const BuiltTopology built = build(ComposedSpec{
      .domain = inner, .tiers = {{.name = "pod", .count = 3, .fabric = outer, .planes = 2}}});
  // Three blocks of two leaves, and two planes of three leaves; up and down.
  EXPECT_EQ(built.fabric.groups().size(), 2u * (3 * 2 + 2 * 3));
  std::set<LinkId> seen;
  for (const LinkGroup& group : built.fabric.groups()) {
    for (const LinkId link : group.links) {
      EXPECT_TRUE(seen.insert(link).second) << built.fabric.link_name(link);
      EXPECT_EQ(built.fabric.link(link).bandwidth, group.bandwidth);
    }
  }
  EXPECT_EQ(sizes(built, 4, 6), (Sizes{1, 2, 2, 1})) << "within the second block";
  EXPECT_EQ(sizes(built, 4, 11), (Sizes{1, 2, 2, 1})) << "between blocks";
}

TEST(AdaptiveGroupsTest, LetAChipReachItsPeersOverAllSpines) {
  FatTreeSpec spec{.switch_ports = 4, .tiers = 2, .taper = 4, .link_bandwidth = 1_GBps};
  // To chips 2, 4, 6 of other leaves: by destination all of them go over spine 0, at 0.25 GB/s.
  EXPECT_EQ(bandwidth_by_level(build(spec))[1].to_peers, Bandwidth(0.25e9));
  spec.routing = kAdaptive;
  EXPECT_EQ(bandwidth_by_level(build(spec))[1].to_peers, Bandwidth(0.5e9));
}

}  // namespace
}  // namespace stepsim
