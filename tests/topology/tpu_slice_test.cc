#include "topology/kinds/torus/tpu_slice.h"

#include <gtest/gtest.h>

#include "tests/support/routes.h"
#include "topology/graph/bisection.h"
#include "topology/graph/graph_measures.h"

namespace stepsim {
namespace {

using namespace literals;
using Wraps = std::vector<bool>;

std::string problem_of(const TpuSliceSpec& spec) {
  const std::vector<Problem> problems = check(spec);
  return problems.size() == 1 ? problems[0].field + ": " + problems[0].message
                              : std::to_string(problems.size()) + " problems";
}

BuiltTopology built(const TpuSliceSpec& spec) {
  EXPECT_EQ(problem_of(spec), "0 problems");
  return build(spec);
}

TEST(TpuSliceTest, CubesWrapOnEveryAxisAndPartsOfOneOnNone) {
  EXPECT_EQ(wraps_of(TpuGeneration::kV5p, {4, 4, 4}), (Wraps{true, true, true}));
  EXPECT_EQ(wraps_of(TpuGeneration::kV4, {8, 16, 4}), (Wraps{true, true, true}));
  EXPECT_EQ(wraps_of(TpuGeneration::kV5p, {2, 2, 4}), (Wraps{false, false, false}));
}

TEST(TpuSliceTest, FlatSlicesWrapOnlyOnAWholeAxisOfThePod) {
  EXPECT_EQ(wraps_of(TpuGeneration::kV5e, {16, 16}), (Wraps{true, true}));
  EXPECT_EQ(wraps_of(TpuGeneration::kV5e, {8, 16}), (Wraps{false, true}));
  EXPECT_EQ(wraps_of(TpuGeneration::kV6e, {8, 8}), (Wraps{false, false}));
  EXPECT_EQ(wraps_of(TpuGeneration::kV3, {16, 16}), (Wraps{false, false}));
  EXPECT_EQ(wraps_of(TpuGeneration::kV3, {16, 32}), (Wraps{false, true}));
}

// Cables times bandwidth across the middle of the last axis, twice where it wraps.
TEST(TpuSliceTest, WholePodsHaveTheirBisection) {
  // Cloud TPU documentation, v4: 24 TB/s a pod (of 46.9 GB/s links; 45 here).
  EXPECT_EQ(bisection_bandwidth(built({TpuGeneration::kV4, {16, 16, 16}}).fabric),
            2 * 256 * 45_GBps);
  EXPECT_EQ(bisection_bandwidth(built({TpuGeneration::kV5e, {16, 16}}).fabric), 2 * 16 * 45_GBps);
  EXPECT_EQ(bisection_bandwidth(built({TpuGeneration::kV6e, {16, 8}}).fabric), 16 * 90_GBps);
  EXPECT_EQ(bisection_bandwidth(built({TpuGeneration::kV3, {32, 32}}).fabric), 2 * 32 * 100_GBps);
  const BuiltTopology v5p = built({TpuGeneration::kV5p, {16, 20, 28}});
  EXPECT_EQ(v5p.places.chips.size(), 8960U);
  EXPECT_EQ(v5p.fabric.links().size(), 53760U);
  EXPECT_EQ(bisection_bandwidth(v5p.fabric), 2 * 16 * 20 * 90_GBps);
}

TEST(TpuSliceTest, TakesAxesInAnyOrder) {
  EXPECT_EQ(problem_of({TpuGeneration::kV5p, {28, 16, 20}}), "0 problems");
  EXPECT_EQ(problem_of({TpuGeneration::kV5e, {8, 4}}), "0 problems");
  EXPECT_EQ(problem_of({TpuGeneration::kV4, {12, 24, 12}}), "0 problems")
      << "named by the documentation of v4";
}

TEST(TpuSliceTest, RefusesShapesThatAreNotThereAndNamesTheNearest) {
  EXPECT_EQ(problem_of({TpuGeneration::kV5e, {12, 12}}),
            "shape: v5e has no slice of 12x12; the nearest are 8x8 and 16x16");
  EXPECT_EQ(problem_of({TpuGeneration::kV5p, {6, 6, 6}}),
            "shape: v5p has no slice of 6x6x6; the nearest are 4x4x4 and 8x8x8");
  EXPECT_EQ(problem_of({TpuGeneration::kV5p, {4, 4, 6}}),
            "shape: v5p has no slice of 4x4x6; the nearest are 4x4x4 and 4x4x8");
  EXPECT_EQ(problem_of({TpuGeneration::kV5p, {20, 20, 20}}),
            "shape: v5p has no slice of 20x20x20; the nearest is 16x20x20");
  EXPECT_EQ(problem_of({TpuGeneration::kV4, {16, 16, 20}}),
            "shape: v4 has no slice of 16x16x20; the nearest is 16x16x16");
  EXPECT_EQ(problem_of({TpuGeneration::kV6e, {16, 32}}),
            "shape: v6e has no slice of 16x32; the nearest is 16x16");
  EXPECT_EQ(problem_of({TpuGeneration::kV6e, {0, 3}}),
            "shape: v6e has no slice of 0x3; the nearest is 2x4");
  EXPECT_EQ(problem_of({TpuGeneration::kV6e, {0, 99}}),
            "shape: v6e has no slice of 0x99; the largest is 16x16");
  EXPECT_EQ(problem_of({TpuGeneration::kV5p, {4, 4}}), "shape: must have 3 axes on v5p, is 4x4");
  EXPECT_EQ(problem_of({TpuGeneration::kV3, {}}), "shape: must have 2 axes on v3, is empty");
}

TEST(TpuSliceTest, RefusesAWrapThatTheHardwareDoesNotHave) {
  EXPECT_EQ(
      problem_of({.generation = TpuGeneration::kV5e, .shape = {8, 16}, .wraps = Wraps{true, true}}),
      "wraps[0]: an axis of 8 in a v5e slice of 8x16 does not wrap; an axis wraps if it has "
      "16 chips");
  EXPECT_EQ(
      check(
          {.generation = TpuGeneration::kV5p, .shape = {2, 2, 4}, .wraps = Wraps{true, true, true}})
          .size(),
      3U);
  EXPECT_EQ(problem_of({.generation = TpuGeneration::kV5p,
                        .shape = {4, 4, 4},
                        .wraps = Wraps{true, true, true}}),
            "0 problems");
  EXPECT_EQ(problem_of({.generation = TpuGeneration::kV4,
                        .shape = {4, 4, 4},
                        .wraps = Wraps{true, false, true}}),
            "wraps[1]: an axis of 4 in a v4 slice of 4x4x4 wraps; all axes wrap if the slice is "
            "made of whole cubes of 4x4x4, else none");
  EXPECT_EQ(
      problem_of({.generation = TpuGeneration::kV4, .shape = {4, 4, 4}, .wraps = Wraps{true}}),
      "wraps: must say it for 3 axes, does for 1");
}

TEST(TpuSliceTest, TwistsCubesOfTheRightProportions) {
  const BuiltTopology slice =
      built({.generation = TpuGeneration::kV4, .shape = {4, 4, 8}, .twisted = true});
  EXPECT_EQ(diameter_in_hops(slice.fabric), 6U);
  EXPECT_EQ(diameter_in_hops(built({TpuGeneration::kV4, {4, 4, 8}}).fabric), 8U);
  const std::string rule =
      "twisted: needs whole cubes as K x K x 2K or K x 2K x 2K, such as 4x4x8, 4x8x8 or 8x8x16; "
      "is ";
  EXPECT_EQ(problem_of({.generation = TpuGeneration::kV5p, .shape = {8, 8, 8}, .twisted = true}),
            rule + "8x8x8");
  EXPECT_EQ(problem_of({.generation = TpuGeneration::kV5p, .shape = {2, 2, 4}, .twisted = true}),
            rule + "2x2x4");
  EXPECT_EQ(problem_of({.generation = TpuGeneration::kV5e, .shape = {8, 16}, .twisted = true}),
            "twisted: v5e has no twisted slices, v4 and v5p have");
}

// A 4x4x8 slice is two cubes of 3 axes * 3 * 16 = 144 electrical cables each; of its 3 * 128 = 384
// cables the other 96 go through optical switches.
TEST(TpuSliceTest, CablesBetweenCubesMayHaveALatencyOfTheirOwn) {
  const BuiltTopology slice = built({.generation = TpuGeneration::kV5p,
                                     .shape = {4, 4, 8},
                                     .link_latency = 100ns,
                                     .optical_latency = 500ns});
  int optical = 0;
  for (const Link& link : slice.fabric.links()) {
    if (link.latency == Duration(500ns)) ++optical;
  }
  EXPECT_EQ(slice.fabric.links().size(), 768U);
  EXPECT_EQ(optical, 2 * (384 - 2 * 144));
  // Ids are as they were, so routes still are: 1 along z inside the cube, then out of it.
  Duration latency{};
  for (const LinkId link : route(slice, 2 * 16, 4 * 16)) latency += slice.fabric.link(link).latency;
  EXPECT_EQ(latency, Duration(600ns));
  EXPECT_EQ(
      problem_of({.generation = TpuGeneration::kV5e, .shape = {16, 16}, .optical_latency = 1us}),
      "optical_latency: v5e has no optical switches, v4 and v5p have");
}

TEST(TpuSliceTest, HostsServeTheirBoxOfChips) {
  const BuiltTopology pod = built(
      {.generation = TpuGeneration::kV5p, .shape = {4, 4, 4}, .hosts = TpuHosts{.latency = 1us}});
  EXPECT_EQ(pod.places.chips.size(), 64U);
  EXPECT_EQ(pod.fabric.nodes().size(), 64U + 16) << "4 chips a host";
  EXPECT_EQ(pod.fabric.links().size(), 2U * (3 * 64 + 64));
  EXPECT_EQ(pod.fabric.node(NodeId(64)).name, "host0.0.0");
  EXPECT_EQ(pod.fabric.node(NodeId(64)).kind, NodeKind::kHost);
  // Chip (3, 2, 1) is of the box (2..3, 2..3, 1): host (1, 1, 1) = number 1 + 2 * (1 + 2 * 1).
  const std::uint32_t chip = 3 + 4 * (2 + 4 * 1);
  bool found = false;
  for (const Link& link : pod.fabric.links()) {
    if (link.from != NodeId(chip) || pod.fabric.node(link.to).kind != NodeKind::kHost) continue;
    EXPECT_EQ(pod.fabric.node(link.to).name, "host1.1.1");
    EXPECT_EQ(link.to, NodeId(64 + 7));
    EXPECT_EQ(link.bandwidth, 15_GBps);
    EXPECT_EQ(link.latency, Duration(1us));
    found = true;
  }
  EXPECT_TRUE(found);
  for (const LinkId link : route(pod, 0, 63)) {
    EXPECT_EQ(pod.fabric.node(pod.fabric.link(link).to).kind, NodeKind::kChip);
  }
}

TEST(TpuSliceTest, TurnsTheHostsBoxToFit) {
  const auto hosts = [](std::vector<int> shape) {
    const BuiltTopology slice =
        built({.generation = TpuGeneration::kV5e, .shape = std::move(shape), .hosts = TpuHosts{}});
    return slice.fabric.nodes().size() - slice.places.chips.size();
  };
  EXPECT_EQ(hosts({2, 4}), 1U);
  EXPECT_EQ(hosts({4, 2}), 1U);
  EXPECT_EQ(hosts({2, 2}), 1U) << "half of a host";
  EXPECT_EQ(hosts({16, 16}), 32U) << "Cloud TPU documentation: 32 hosts";
  EXPECT_EQ(hosts({4, 8}), 4U);
}

TEST(TpuSliceTest, ReportsEveryProblemAtOnce) {
  EXPECT_EQ(check({.generation = TpuGeneration::kV5p,
                   .shape = {5, 5, 5},
                   .link_bandwidth = Bandwidth(0),
                   .link_latency = -1ns,
                   .optical_latency = -1ns,
                   .hosts = TpuHosts{.bandwidth = Bandwidth(-1), .latency = -1ns}})
                .size(),
            6U);
}

TEST(TpuSliceTest, GenerationsHaveNames) {
  for (const TpuGeneration generation : kTpuGenerations) {
    EXPECT_EQ(tpu_generation_named(name_of(generation)), generation);
  }
  EXPECT_EQ(tpu_generation_named("v7"), std::nullopt);
  EXPECT_EQ(link_bandwidth_of(TpuGeneration::kV5p), 90_GBps);
  EXPECT_EQ(host_bandwidth_of(TpuGeneration::kV6e), 32_GBps);
}

}  // namespace
}  // namespace stepsim
