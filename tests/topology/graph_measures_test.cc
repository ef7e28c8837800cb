#include "topology/graph/graph_measures.h"

#include <gtest/gtest.h>

#include <string>

namespace stepsim {
namespace {

using namespace literals;

// Two pairs of chips, each on its own switch, and a thin cable between the switches:
//
//   chip0, chip1 == left == right == chip2, chip3
struct Dumbbell {
  Fabric fabric;
  std::vector<NodeId> chips;
  NodeId left, right;

  explicit Dumbbell(Bandwidth middle) {
    for (const char* name : {"chip0", "chip1", "chip2", "chip3"}) {
      chips.push_back(fabric.add(NodeKind::kChip, name));
    }
    left = fabric.add(NodeKind::kSwitch, "left");
    right = fabric.add(NodeKind::kSwitch, "right");
    for (std::size_t chip = 0; chip < 4; ++chip) {
      fabric.connect(chips[chip], chip < 2 ? left : right, 100_GBps, {});
    }
    fabric.connect(left, right, middle, {});
  }
};

TEST(GraphMeasuresTest, HopsAreTheFewestLinks) {
  const Dumbbell dumbbell(30_GBps);
  const auto hops = hops_from(dumbbell.fabric, dumbbell.chips[0]);
  EXPECT_EQ(hops[dumbbell.chips[0].index()], 0U);
  EXPECT_EQ(hops[dumbbell.left.index()], 1U);
  EXPECT_EQ(hops[dumbbell.chips[1].index()], 2U);
  EXPECT_EQ(hops[dumbbell.chips[3].index()], 3U);
}

TEST(GraphMeasuresTest, DiameterIsBetweenChipsOnly) {
  EXPECT_EQ(diameter_in_hops(Dumbbell(30_GBps).fabric), 3U);

  Fabric longer;  // switches that are further away than any chip
  const NodeId a = longer.add(NodeKind::kChip, "a");
  const NodeId b = longer.add(NodeKind::kChip, "b");
  const NodeId out = longer.add(NodeKind::kSwitch, "out");
  const NodeId further = longer.add(NodeKind::kSwitch, "further");
  longer.connect(a, b, 1_GBps, {});
  longer.connect(b, out, 1_GBps, {});
  longer.connect(out, further, 1_GBps, {});
  EXPECT_EQ(diameter_in_hops(longer), 1U);
}

TEST(GraphMeasuresTest, ConnectedNeedsAWayBack) {
  Fabric fabric;
  const NodeId a = fabric.add(NodeKind::kChip, "a");
  const NodeId b = fabric.add(NodeKind::kChip, "b");
  EXPECT_FALSE(connected(fabric));
  EXPECT_EQ(diameter_in_hops(fabric), std::nullopt);
  EXPECT_EQ(hops_from(fabric, a)[b.index()], std::nullopt);

  fabric.connect_one_way(a, b, 1_GBps, {});
  EXPECT_FALSE(connected(fabric));
  EXPECT_EQ(hops_from(fabric, a)[b.index()], 1U);
  EXPECT_EQ(diameter_in_hops(fabric), std::nullopt) << "b does not reach a";

  fabric.connect_one_way(b, a, 1_GBps, {});
  EXPECT_TRUE(connected(fabric));
  EXPECT_EQ(diameter_in_hops(fabric), 1U);
}

// A line of 1,100 chips, more than are searched together: 1,099 hops from end to end.
TEST(GraphMeasuresTest, DiameterIsRightBeyondOneBatchOfSearches) {
  Fabric line;
  for (int chip = 0; chip < 1100; ++chip) {
    const NodeId next = line.add(NodeKind::kChip, "c" + std::to_string(chip));
    if (chip > 0) line.connect(NodeId(next.index() - 1), next, 1_GBps, {});
  }
  EXPECT_EQ(diameter_in_hops(line), 1099U);
}

TEST(GraphMeasuresTest, ChipsCutOffAreThoseOutsideTheLargestPart) {
  const Dumbbell whole(30_GBps);
  EXPECT_TRUE(chips_cut_off(whole.fabric).empty());
  Fabric parted;
  for (const char* name : {"a", "b", "c", "d", "e"}) parted.add(NodeKind::kChip, name);
  parted.connect(NodeId(2), NodeId(3), 1_GBps, {});
  parted.connect_one_way(NodeId(0), NodeId(2), 1_GBps, {});
  const auto lost = chips_cut_off(parted);
  EXPECT_EQ(lost, (std::vector<NodeId>{NodeId(0), NodeId(1), NodeId(4)}));
  EXPECT_EQ(cut_off_text(parted, lost), "a, b, e are cut off");
  EXPECT_EQ(cut_off_text(parted, {NodeId(1)}), "b is cut off");
  EXPECT_EQ(cut_off_text(parted, {NodeId(0), NodeId(1), NodeId(2), NodeId(3), NodeId(4)}),
            "a, b, c, d and 1 more are cut off");
}

TEST(GraphMeasuresTest, FlowIsLimitedToTheLinksThatMayBeUsed) {
  const Dumbbell dumbbell(30_GBps);
  const std::vector<NodeId>& chips = dumbbell.chips;
  EXPECT_EQ(flow_between(dumbbell.fabric, {chips[0]}, {chips[1]}), 100_GBps);
  EXPECT_EQ(flow_between(dumbbell.fabric, {chips[0]}, {chips[1], chips[2]}), 100_GBps);
  EXPECT_EQ(flow_between(dumbbell.fabric, {chips[0], chips[1]}, {chips[3]}), 30_GBps);
  EXPECT_EQ(flow_between(dumbbell.fabric, {chips[0]}, {}), Bandwidth(0));
  const std::vector<bool> none(dumbbell.fabric.links().size(), false);
  EXPECT_EQ(flow_between(dumbbell.fabric, {chips[0]}, {chips[1]}, &none), Bandwidth(0));
}

TEST(GraphMeasuresTest, OneChipHasNoDistance) {
  Fabric fabric;
  fabric.add(NodeKind::kChip, "alone");
  EXPECT_TRUE(connected(fabric));
  EXPECT_EQ(diameter_in_hops(fabric), 0U);
}

}  // namespace
}  // namespace stepsim
