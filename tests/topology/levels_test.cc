#include "topology/graph/levels.h"

#include <gtest/gtest.h>

namespace stepsim {
namespace {

using Names = std::vector<std::string>;

Names names(const std::vector<Level>& levels) {
  Names names;
  for (const Level& level : levels) names.push_back(level.name + " " + std::to_string(level.size));
  return names;
}

const std::vector<Level> kSuperPod = {
    {.name = "rail", .size = 8}, {.name = "node", .size = 32}, {.name = "unit", .size = 4}};

TEST(LevelsTest, OfTheFirstMembersAreThoseThatFillUp) {
  EXPECT_EQ(names(levels_of_first(kSuperPod, 1024)), (Names{"rail 8", "node 32", "unit 4"}));
  EXPECT_EQ(names(levels_of_first(kSuperPod, 512)), (Names{"rail 8", "node 32", "unit 2"}));
  EXPECT_EQ(names(levels_of_first(kSuperPod, 256)), (Names{"rail 8", "node 32"}));
  EXPECT_EQ(names(levels_of_first(kSuperPod, 264)), (Names{"rail 8", "node 33"}));
  EXPECT_EQ(names(levels_of_first(kSuperPod, 40)), (Names{"rail 8", "node 5"}));
  EXPECT_EQ(names(levels_of_first(kSuperPod, 12)), (Names{"rail 12"}));
  EXPECT_EQ(names(levels_of_first({{.name = "a", .size = 1}, {.name = "b", .size = 1}}, 1)),
            (Names{"a 1"}));
}

TEST(LevelsTest, ACutRingDoesNotWrap) {
  const std::vector<Level> ring = {
      {.name = "x", .size = 4, .kind = LevelKind::kTorusAxis, .wraps = true}};
  EXPECT_TRUE(levels_of_first(ring, 4)[0].wraps);
  EXPECT_FALSE(levels_of_first(ring, 3)[0].wraps);
}

TEST(LevelsTest, OfBlocksBeginWithTheBlock) {
  EXPECT_EQ(names(levels_of_blocks(kSuperPod, 8, "node")), (Names{"node 32", "unit 4"}));
  EXPECT_EQ(names(levels_of_blocks(kSuperPod, 32, "rack")), (Names{"rack 8", "unit 4"}));
  EXPECT_EQ(names(levels_of_blocks(kSuperPod, 256, "pod")), (Names{"pod 4"}));
  EXPECT_EQ(names(levels_of_blocks(kSuperPod, 1024, "pod")), (Names{"pod 1"}));
  EXPECT_EQ(names(levels_of_blocks(kSuperPod, 4, "half")), (Names{"half 2", "node 32", "unit 4"}));
  // Two blocks of 4 don't fill 6: the blocks are one level.
  EXPECT_EQ(
      names(levels_of_blocks({{.name = "a", .size = 6}, {.name = "b", .size = 4}}, 4, "node")),
      (Names{"node 6"}));
  // 16 does not divide 8, but the 256 chips of a unit.
  EXPECT_EQ(names(levels_of_blocks(kSuperPod, 16, "pair")), (Names{"pair 16", "unit 4"}));
}

TEST(LevelsTest, ATorusOfBlocksKeepsItsAxes) {
  const std::vector<Level> torus = {
      {.name = "x", .size = 4, .kind = LevelKind::kTorusAxis, .wraps = true},
      {.name = "y", .size = 3, .kind = LevelKind::kTorusAxis}};
  const std::vector<Level> levels = levels_of_blocks(torus, 1, "node");
  EXPECT_EQ(names(levels), (Names{"x 4", "y 3"}));
  EXPECT_TRUE(levels[0].wraps);
}

}  // namespace
}  // namespace stepsim
