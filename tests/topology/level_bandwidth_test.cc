#include "topology/graph/level_bandwidth.h"

#include <gtest/gtest.h>

#include "topology/kinds/switched/dgx_superpod.h"
#include "topology/kinds/torus/torus.h"

namespace stepsim {
namespace {

using namespace literals;

// The table of level_bandwidth.h: "How to Scale Your Model" and NVIDIA's reference architecture
// have 450 GB/s a GPU in a node, 400 GB/s out of a node, 12.8 TB/s out of a scalable unit of 256.
TEST(LevelBandwidthTest, OfASuperPodOf1024GpusIsWhatIsPublished) {
  const auto levels = bandwidth_by_level(build(DgxSuperPodSpec{.nodes = 128}));
  ASSERT_EQ(levels.size(), 3U);
  EXPECT_EQ(levels[0].level, "gpu");
  EXPECT_EQ(levels[0].to_peers, 450_GBps);
  EXPECT_EQ(levels[0].out_of_group, 500_GBps);
  EXPECT_EQ(levels[1].level, "node");
  EXPECT_EQ(levels[1].to_peers, 50_GBps);
  EXPECT_EQ(levels[1].group_chips, 8U);
  EXPECT_EQ(levels[1].groups, 128U);
  EXPECT_EQ(levels[1].out_of_group, 400_GBps);
  EXPECT_EQ(levels[2].level, "scalable_unit");
  EXPECT_EQ(levels[2].members, 4U);
  EXPECT_EQ(levels[2].to_peers, 50_GBps);
  EXPECT_EQ(levels[2].group_chips, 256U);
  EXPECT_EQ(levels[2].out_of_group, 12800_GBps);
}

// x is a ring: two links to peers. y is a line: chip 0 is at its end and has one link. A chip at
// the corner has three links; a row (a ring) of four at the edge has one outwards each.
TEST(LevelBandwidthTest, OfATorusCountsCables) {
  const auto levels = bandwidth_by_level(
      build(TorusSpec{.axes = {{.size = 4, .wraps = true}, {.size = 3, .wraps = false}},
                      .link_bandwidth = 90_GBps}));
  ASSERT_EQ(levels.size(), 2U);
  EXPECT_EQ(levels[0].to_peers, 180_GBps);
  EXPECT_EQ(levels[0].out_of_group, 270_GBps);
  EXPECT_EQ(levels[1].to_peers, 90_GBps);
  EXPECT_EQ(levels[1].out_of_group, 360_GBps);
}

TEST(LevelBandwidthTest, ALevelOfOneMemberHasNoPeers) {
  const auto levels =
      bandwidth_by_level(build(TorusSpec{.axes = {{.size = 1}}, .link_bandwidth = 90_GBps}));
  ASSERT_EQ(levels.size(), 1U);
  EXPECT_EQ(levels[0].to_peers, Bandwidth(0));
  EXPECT_EQ(levels[0].out_of_group, Bandwidth(0));
}

}  // namespace
}  // namespace stepsim
