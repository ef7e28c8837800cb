#include "sim/hardware/group_shape.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "topology/small_clusters.h"

namespace stepsim {
namespace {

Cluster two_nodes() {
  DgxSuperPodSpec spec;
  spec.nodes = 2;
  return cluster_of(spec);
}

Cluster torus_4x4() {
  TorusSpec spec;
  spec.axes = {{4, true}, {4, false}};
  spec.link_bandwidth = Bandwidth(1e9);
  return cluster_of(spec);
}

TEST(GroupShapeTest, MembersInOneNodeAreOneSwitchedDimension) {
  const GroupShape shape = describe(two_nodes(), std::vector<std::uint32_t>{2, 3, 4, 5});
  EXPECT_EQ(shape.dimensions, (std::vector<GroupDimension>{{.size = 4}}));
}

// tp 4: the ranks with tensor coordinate 1 are GPUs 1 and 5 of each node.
TEST(GroupShapeTest, EveryFourthGpuOfEachNodeIsABoxOfTwoLevels) {
  const GroupShape shape = describe(two_nodes(), std::vector<std::uint32_t>{1, 5, 9, 13});
  EXPECT_EQ(shape.dimensions, (std::vector<GroupDimension>{{.size = 2}, {.size = 2}}));
  EXPECT_EQ(shape.order, (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST(GroupShapeTest, MembersAreFoundInTheirPositionWhateverTheirOrder) {
  const GroupShape shape = describe(two_nodes(), std::vector<std::uint32_t>{13, 1, 9, 5});
  EXPECT_EQ(shape.order, (std::vector<std::uint32_t>{1, 3, 2, 0}));
}

TEST(GroupShapeTest, NodesWithDifferentNumbersOfMembersAreUneven) {
  const GroupShape shape = describe(two_nodes(), std::vector<std::uint32_t>{0, 8, 1});
  EXPECT_EQ(shape.dimensions, (std::vector<GroupDimension>{{.size = 3}}));
  EXPECT_EQ(shape.uneven_nodes, (std::vector<std::uint32_t>{2, 1}));
  EXPECT_EQ(shape.order, (std::vector<std::uint32_t>{0, 2, 1})) << "node by node";
}

// GPUs 4 to 7 of one node and 0 to 3 of the next: as many in each, though not the same ones.
TEST(GroupShapeTest, NodesWithOtherGpusAreUnevenToo) {
  const GroupShape shape =
      describe(two_nodes(), std::vector<std::uint32_t>{4, 5, 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(shape.uneven_nodes, (std::vector<std::uint32_t>{4, 4}));
  const GroupShape one_each = describe(two_nodes(), std::vector<std::uint32_t>{4, 9});
  EXPECT_TRUE(one_each.uneven_nodes.empty());
}

TEST(GroupShapeTest, MembersThatFillNoBoxOfATorusAreOneDimensionInTheirOrder) {
  const GroupShape shape = describe(torus_4x4(), std::vector<std::uint32_t>{0, 1, 5});
  EXPECT_EQ(shape.dimensions, (std::vector<GroupDimension>{{.size = 3}}));
  EXPECT_EQ(shape.order, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_TRUE(shape.uneven_nodes.empty());
}

TEST(GroupShapeTest, AnAxisWrapsOnlyWhereItsMembersGoAllTheWayRound) {
  const Cluster cluster = torus_4x4();
  const GroupDimension ring{.size = 4, .torus_axis = true, .wraps = true};
  const GroupDimension line{.size = 4, .torus_axis = true, .wraps = false};
  const GroupDimension part{.size = 3, .torus_axis = true, .wraps = false};
  const GroupDimension every_other{.size = 2, .torus_axis = true, .wraps = true};
  EXPECT_EQ(describe(cluster, std::vector<std::uint32_t>{0, 1, 2, 3}).dimensions,
            std::vector<GroupDimension>{ring});
  EXPECT_EQ(describe(cluster, std::vector<std::uint32_t>{0, 4, 8, 12}).dimensions,
            std::vector<GroupDimension>{line});
  EXPECT_EQ(describe(cluster, std::vector<std::uint32_t>{0, 1, 2}).dimensions,
            std::vector<GroupDimension>{part});
  EXPECT_EQ(describe(cluster, std::vector<std::uint32_t>{1, 3}).dimensions,
            std::vector<GroupDimension>{every_other});
  std::vector<std::uint32_t> all(16);
  std::iota(all.begin(), all.end(), 0U);
  EXPECT_EQ(describe(cluster, all).dimensions, (std::vector<GroupDimension>{ring, line}));
}

TEST(GroupShapeTest, AGroupOfOneHasNoDimensions) {
  EXPECT_TRUE(describe(two_nodes(), std::vector<std::uint32_t>{3}).dimensions.empty());
}

}  // namespace
}  // namespace stepsim
