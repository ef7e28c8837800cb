#include "topology/graph/bisection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "topology/topology.h"

namespace stepsim {
namespace {

using namespace literals;

// Two pairs of chips, each on its own switch, and a cable between the switches:
//
//   chip0, chip1 == left == right == chip2, chip3
struct TwoPairs {
  Fabric fabric;
  NodeId left, right;

  explicit TwoPairs(Bandwidth middle) {
    for (const char* name : {"chip0", "chip1", "chip2", "chip3"}) {
      fabric.add(NodeKind::kChip, name);
    }
    left = fabric.add(NodeKind::kSwitch, "left");
    right = fabric.add(NodeKind::kSwitch, "right");
    for (std::uint32_t chip = 0; chip < 4; ++chip) {
      fabric.connect(NodeId(chip), chip < 2 ? left : right, 100_GBps, {});
    }
    fabric.connect(left, right, middle, {});
  }
};

TEST(BisectionTest, IsTheNarrowestCutBetweenTheHalves) {
  EXPECT_EQ(bisection_bandwidth(TwoPairs(30_GBps).fabric), 30_GBps) << "the middle";
  // chip0, chip2 and both switches against chip1 and chip3 cut two chips' own links.
  EXPECT_EQ(bisection_bandwidth(TwoPairs(300_GBps).fabric), 200_GBps);
}

TEST(BisectionTest, AddsParallelLinksAndPaths) {
  TwoPairs pairs(30_GBps);
  pairs.fabric.connect(pairs.left, pairs.right, 20_GBps, {});
  const NodeId around = pairs.fabric.add(NodeKind::kSwitch, "around");
  pairs.fabric.connect(pairs.left, around, 40_GBps, {});
  pairs.fabric.connect(around, pairs.right, 5_GBps, {});
  EXPECT_EQ(bisection_bandwidth(pairs.fabric), 55_GBps);  // 30 + 20 + min(40, 5)
}

TEST(BisectionTest, CountsTheDirectionThatCarriesLess) {
  Fabric fabric;
  const NodeId a = fabric.add(NodeKind::kChip, "a");
  const NodeId b = fabric.add(NodeKind::kChip, "b");
  fabric.connect_one_way(a, b, 7_GBps, {});
  fabric.connect_one_way(b, a, 3_GBps, {});
  EXPECT_EQ(bisection_bandwidth(fabric), 3_GBps);
}

TEST(BisectionTest, OneChipHasNone) {
  Fabric fabric;
  fabric.add(NodeKind::kChip, "alone");
  EXPECT_EQ(bisection_bandwidth(fabric), Bandwidth(0));
}

// A line of three: {a} against {b, c}, since the link of c is wider.
TEST(BisectionTest, AnOddChipBelongsToEitherHalf) {
  Fabric fabric;
  const NodeId a = fabric.add(NodeKind::kChip, "a");
  const NodeId b = fabric.add(NodeKind::kChip, "b");
  const NodeId c = fabric.add(NodeKind::kChip, "c");
  fabric.connect(b, c, 2_GBps, {});
  fabric.connect(a, b, 9_GBps, {});
  EXPECT_EQ(bisection_bandwidth(fabric), 2_GBps);
}

// The same fabric with its nodes in another order.
Fabric renumbered(const Fabric& fabric, std::uint32_t seed) {
  std::vector<std::uint32_t> order(fabric.nodes().size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  Fabric other;
  std::vector<NodeId> place(order.size(), NodeId(0));
  for (const std::uint32_t node : order) {
    place[node] = other.add(fabric.nodes()[node].kind, fabric.nodes()[node].name);
  }
  for (const Link& link : fabric.links()) {
    other.connect_one_way(place[link.from.index()], place[link.to.index()], link.bandwidth, {});
  }
  return other;
}

Fabric torus_of(const std::vector<int>& sides, bool wraps = true) {
  TorusSpec spec{.axes = {}, .link_bandwidth = 90_GBps};
  for (const int side : sides) spec.axes.push_back({.size = side, .wraps = wraps});
  return build_topology(spec).fabric;
}

Fabric hypercube_of(std::uint32_t dimensions) {
  Fabric fabric;
  for (std::uint32_t chip = 0; chip < 1U << dimensions; ++chip) {
    fabric.add(NodeKind::kChip, "chip" + std::to_string(chip));
  }
  for (std::uint32_t chip = 0; chip < 1U << dimensions; ++chip) {
    for (std::uint32_t bit = 1; bit < 1U << dimensions; bit *= 2) {
      if ((chip & bit) == 0) fabric.connect(NodeId(chip), NodeId(chip | bit), 1_GBps, {});
    }
  }
  return fabric;
}

// Every other link once has the order of the chips decided. Of a torus a x b x c whose longest side
// c is even, two planes of a x b links are cut; of a mesh one; of a hypercube half of the chips'
// links along one dimension (Leighton: Introduction to Parallel Algorithms and Architectures,
// 1992, sections 1.2 and 3.1); of full bisection trees half of the hosts' own links.
TEST(BisectionTest, NumberingAndTurningChangeNothing) {
  struct Case {
    const char* name;
    Fabric fabric;
    Bandwidth expected;
  };
  std::vector<Case> cases;
  for (const auto& sides : std::vector<std::vector<int>>{{4, 4, 8}, {4, 8, 4}, {8, 4, 4}}) {
    cases.push_back({"torus 4 x 4 x 8", torus_of(sides), 2 * 16 * 90_GBps});
  }
  cases.push_back({"torus 16 x 4", torus_of({16, 4}), 2 * 4 * 90_GBps});
  cases.push_back({"torus 8 x 8 x 8", torus_of({8, 8, 8}), 2 * 64 * 90_GBps});
  cases.push_back({"mesh 8 x 4", torus_of({8, 4}, false), 4 * 90_GBps});
  cases.push_back({"hypercube", hypercube_of(6), 32_GBps});
  for (const auto& sides : std::vector<std::vector<int>>{{4, 4, 8}, {8, 4, 4}, {4, 8, 4}}) {
    // Across the middle of a short axis 4 x 8 cables, and as many that wrap.
    cases.push_back(
        {"twisted torus",
         build_topology(TwistedTorusSpec{.shape = sides, .link_bandwidth = 90_GBps}).fabric,
         2 * 32 * 90_GBps});
  }
  cases.push_back(
      {"SuperPOD", build_topology(DgxSuperPodSpec{.nodes = 8}).fabric, 4 * 8 * 50_GBps});
  cases.push_back({"2:1",
                   build_topology(DgxSuperPodSpec{.nodes = 64, .oversubscription = 2}).fabric,
                   32 * 8 * 25_GBps});
  for (const Case& one : cases) {
    EXPECT_EQ(bisection_bandwidth(one.fabric), one.expected) << one.name;
    for (std::uint32_t seed = 1; seed <= 3; ++seed) {
      EXPECT_EQ(bisection_bandwidth(renumbered(one.fabric, seed)), one.expected)
          << one.name << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace stepsim
