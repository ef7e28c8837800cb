#include "experiment/step/placement.h"

#include <gtest/gtest.h>

#include "schedules/plan/axis.h"
#include "topology/kinds/switched/dgx_superpod.h"
#include "topology/kinds/torus/torus.h"

namespace stepsim {
namespace {

// One communicator of the axis, groups of `size` neighbouring ranks on `ranks` chips.
OpGraph grouped(std::uint32_t ranks, std::uint32_t size, Axis axis) {
  OpGraph graph;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    graph.ranks.push_back({.program = ProgramId(0), .chip = rank});
  Communicator communicator{.name = "group", .axis = axis, .groups = {}, .seat_of = {}};
  for (std::uint32_t first = 0; first < ranks; first += size) {
    communicator.groups.emplace_back();
    for (std::uint32_t i = 0; i < size; ++i) communicator.groups.back().emplace_back(first + i);
  }
  graph.communicators.push_back(std::move(communicator));
  return graph;
}

Cluster on(BuiltTopology built) {
  return {.fabric = std::move(built.fabric),
          .router = std::move(built.router),
          .places = std::move(built.places),
          .chip = {}};
}

Cluster nodes(int count) {
  return on(build(DgxSuperPodSpec{.nodes = count}));
}

TEST(PlacementTest, AGroupInsideANodeCostsNothing) {
  EXPECT_TRUE(placement_notes(grouped(16, 8, Axis::kTensor), nodes(2), {}).empty());
}

TEST(PlacementTest, AGroupAcrossNodesLeavesNvlink) {
  SimulationResult result;
  result.breakdown.exposed_communication[static_cast<std::size_t>(Axis::kTensor)] =
      duration_from_seconds(1.5);
  const std::vector<PlacementNote> notes =
      placement_notes(grouped(16, 16, Axis::kTensor), nodes(2), result);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(
      notes[0].text,
      "tp spans 2 nodes: its traffic leaves the links inside a node (450 GB/s) for those "
      "between nodes (50.0 GB/s), which are 9 times slower; exposed tp is 1.50 s of the step");
}

TEST(PlacementTest, GradientsMayTravel) {
  EXPECT_TRUE(placement_notes(grouped(16, 16, Axis::kData), nodes(2), {}).empty());
}

TEST(PlacementTest, PartOfATorusAxisIsALine) {
  const TorusSpec torus{.axes = {{.size = 16, .wraps = true}}, .link_bandwidth = Bandwidth(1e11)};
  const std::vector<PlacementNote> line =
      placement_notes(grouped(16, 8, Axis::kTensor), on(build(torus)), {});
  ASSERT_EQ(line.size(), 1U);
  EXPECT_EQ(line[0].text,
            "tp has 8 chips in a line, not a ring: up to twice the time of an axis that wraps");
  EXPECT_TRUE(placement_notes(grouped(16, 16, Axis::kTensor), on(build(torus)), {}).empty());
}

}  // namespace
}  // namespace stepsim
