#include "topology/dot.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/base/quantity_text.h"
#include "topology/faults.h"
#include "topology/kinds/explicit_graph.h"
#include "topology/kinds/switched/dgx_superpod.h"
#include "topology/kinds/torus/torus.h"

namespace stepsim {
namespace {

using namespace literals;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

BuiltTopology grid(int x, int y, bool wraps) {
  return build(TorusSpec{.axes = {{.size = x, .wraps = wraps}, {.size = y, .wraps = wraps}},
                         .link_bandwidth = 45_GBps});
}

// 16 chips; 2 * 4 * 3 cables inside the grid; 8 cables round its ends, two stubs each.
TEST(DotTest, DrawsASmallTorusAsAGridWithStubs) {
  const std::string text = dot_of(grid(4, 4, true), {.title = "v5e"});
  EXPECT_EQ(count(text, "shape=box"), 16U);
  EXPECT_EQ(count(text, "style=dashed"), 16U);
  EXPECT_EQ(count(text, " -- n"), 24U);
  EXPECT_EQ(count(text, to_text(45_GBps)), 1U) << "the legend";
  EXPECT_NE(text.find("v5e"), std::string::npos);
  EXPECT_EQ(count(dot_of(grid(4, 4, false), {}), "style=dashed"), 0U);
}

// 16 GPUs and 2 NVSwitches in two frames, 8 leaves outside (one unit: no spines are needed).
TEST(DotTest, DrawsASmallSuperPodInFramesByNode) {
  const std::string text = dot_of(build(DgxSuperPodSpec{.nodes = 2}), {});
  EXPECT_EQ(count(text, "subgraph"), 2U);
  EXPECT_EQ(count(text, "label=\"node1\""), 1U);
  EXPECT_EQ(count(text, "label=\"gpu5\""), 2U);
  EXPECT_EQ(count(text, "label=\"nvswitch\""), 2U);
}

// 1,024 GPUs, 128 NVSwitches, 32 leaves, 16 spines. Nodes would be 128 boxes; units are 4.
TEST(DotTest, CollapsesALargeSuperPodAndSaysSo) {
  const BuiltTopology pod = build(DgxSuperPodSpec{.nodes = 128});
  EXPECT_EQ(chips_per_box(pod, {}), 256U);
  const std::string text = dot_of(pod, {});
  EXPECT_EQ(count(text, "256 node*.gpu*"), 4U);
  EXPECT_EQ(count(text, "8 su*.leaf*"), 4U);
  EXPECT_EQ(count(text, "shape=ellipse"), 1U);
  EXPECT_EQ(count(text, "16 spine*"), 1U);
  EXPECT_EQ(count(text, "collapsed: a box is 256 chips"), 1U);
  EXPECT_EQ(chips_per_box(build(DgxSuperPodSpec{.nodes = 2}), {}), 1U);
}

// 8 nodes side by side: two, "5 more" and the last one are drawn, with their 8 GPUs each.
TEST(DotTest, DrawsTheFirstAndTheLastOfManyEqualParts) {
  const std::string text = dot_of(build(DgxSuperPodSpec{.nodes = 8}), {});
  EXPECT_EQ(count(text, "subgraph"), 3U);
  EXPECT_EQ(count(text, "label=\"node1\""), 1U);
  EXPECT_EQ(count(text, "label=\"node2\""), 0U);
  EXPECT_EQ(count(text, "label=\"node7\""), 1U);
  EXPECT_EQ(count(text, "label=\"5 more\\n40 node*.gpu*\\n5 node*.nvswitch\""), 1U);
  EXPECT_EQ(count(text, "more: as those beside them"), 1U);
}

// A node that differs from its neighbours is drawn, wherever it is.
TEST(DotTest, DrawsAPartThatIsNotLikeTheOthers) {
  const Faults faults{.links = {{.link = "node4.gpu3>node4.nvswitch", .capacity = 0.5}}};
  const std::string text = dot_of(apply(faults, build(DgxSuperPodSpec{.nodes = 8})), {});
  EXPECT_EQ(count(text, "subgraph"), 4U);
  EXPECT_EQ(count(text, "label=\"node4\""), 1U);
  EXPECT_EQ(count(text, "4 more"), 1U);
}

// 4 x 4 x 4 places, of which those in the middle stand for 13 x 17 x 25 chips. Each axis has three
// lines and two stubs in each of its 16 rows.
TEST(DotTest, ThinsALargeTorusAndShowsItsAxes) {
  const BuiltTopology pod =
      build(TorusSpec{.axes = {{16, true}, {20, true}, {28, true}}, .link_bandwidth = 90_GBps});
  EXPECT_EQ(chips_per_box(pod, {}), 1U);
  const std::string text = dot_of(pod, {});
  EXPECT_EQ(count(text, "shape=box"), 64U);
  EXPECT_EQ(count(text, "style=dashed"), 3U * 16 * 2);
  EXPECT_EQ(count(text, " -- n"), 3U * 16 * 3);
  EXPECT_EQ(count(text, "label=\"2-14.2-18.2-26\\n5525 chip*.*.*\""), 1U);
  EXPECT_EQ(count(text, "label=\"15.19.27\", shape=box"), 1U);
  EXPECT_EQ(count(text, " links"), 0U);
}

// A graph that somebody listed, 192 chips at 24 switches of 8 under one more, has one level.
TEST(DotTest, DividesAGraphOfOneLevelByItsSwitches) {
  ExplicitGraphSpec graph;
  graph.nodes.push_back({"core", NodeKind::kSwitch});
  for (int leaf = 0; leaf < 24; ++leaf) {
    const std::string name = "leaf" + std::to_string(leaf);
    graph.nodes.push_back({name, NodeKind::kSwitch});
    graph.links.push_back({.from = name, .to = "core", .bandwidth = 50_GBps});
    for (int chip = 0; chip < 8; ++chip) {
      const std::string gpu = "gpu" + std::to_string(8 * leaf + chip);
      graph.nodes.push_back({gpu});
      graph.links.push_back({.from = gpu, .to = name, .bandwidth = 50_GBps});
    }
  }
  const BuiltTopology built = build(graph);
  EXPECT_EQ(chips_per_box(built, {}), 8U);
  const std::string text = dot_of(built, {});
  EXPECT_EQ(count(text, "shape=box"), 24U);
  EXPECT_EQ(count(text, "label=\"gpu0 to gpu7\\n8 gpu*\\n1 leaf*\""), 1U);
  EXPECT_EQ(count(text, "label=\"gpu184 to gpu191\\n8 gpu*\\n1 leaf*\""), 1U);
  EXPECT_EQ(count(text, " -- n"), 24U);
}

// A prime number of chips is divided as evenly as can be.
TEST(DotTest, DividesAPrimeNumberOfChips) {
  ExplicitGraphSpec graph;
  graph.nodes.push_back({"hub", NodeKind::kSwitch});
  for (int chip = 0; chip < 211; ++chip) {
    graph.nodes.push_back({"gpu" + std::to_string(chip)});
    graph.links.push_back({.from = graph.nodes.back().name, .to = "hub", .bandwidth = 50_GBps});
  }
  const std::string text = dot_of(build(graph), {});
  EXPECT_EQ(count(text, "shape=box"), 36U);  // of 6 and one of 1
  EXPECT_EQ(count(text, "label=\"gpu210\\n1 gpu*\""), 1U);
}

// One axis is a ring of boxes.
TEST(DotTest, CollapsesALongRing) {
  const BuiltTopology ring = build(TorusSpec{.axes = {{300, true}}, .link_bandwidth = 90_GBps});
  const std::string text = dot_of(ring, {});
  EXPECT_EQ(count(text, "thinned"), 0U);
  EXPECT_EQ(count(text, "shape=box"), 30U);
  EXPECT_EQ(count(text, " -- n"), 30U);
}

}  // namespace
}  // namespace stepsim
