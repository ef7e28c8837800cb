#include "topology/kinds/torus/torus.h"

#include <gtest/gtest.h>

#include "sim/base/quantity_text.h"
#include "tests/support/problems.h"
#include "tests/support/routes.h"
#include "topology/graph/bisection.h"
#include "topology/graph/graph_measures.h"

namespace stepsim {
namespace {

using namespace literals;
using Names = std::vector<std::string>;

TorusSpec torus(std::vector<TorusAxis> axes) {
  return {.axes = std::move(axes), .link_bandwidth = 90_GBps, .link_latency = 1us};
}

constexpr TorusAxis ring(int size) {
  return {.size = size, .wraps = true};
}
constexpr TorusAxis line(int size) {
  return {.size = size, .wraps = false};
}

TEST(TorusTest, HasOneCableToTheNextChipOnEachAxis) {
  const BuiltTopology cube = build(torus({ring(4), ring(4), ring(4)}));
  EXPECT_EQ(cube.fabric.nodes().size(), 64U);
  EXPECT_EQ(cube.fabric.links().size(), 2U * 3 * 64);

  const BuiltTopology mixed = build(torus({ring(4), line(3)}));
  EXPECT_EQ(mixed.fabric.links().size(), 2U * (4 * 3 + 4 * 2)) << "3 rings of 4, 4 lines of 3";

  const BuiltTopology pair = build(torus({line(2)}));
  EXPECT_EQ(pair.fabric.links().size(), 2U);
  const BuiltTopology single = build(torus({line(1)}));
  EXPECT_EQ(single.fabric.nodes().size(), 1U);
  EXPECT_EQ(single.fabric.links().size(), 0U);
}

TEST(TorusTest, LinksHaveTheBandwidthAndLatencyOfTheSpec) {
  const BuiltTopology built = build(torus({ring(3), line(2)}));
  for (const Link& link : built.fabric.links()) {
    EXPECT_EQ(link.bandwidth, 90_GBps);
    EXPECT_EQ(link.latency, Duration(1us));
  }
}

TEST(TorusTest, NumbersChipsWithXFastest) {
  const BuiltTopology box = build(torus({line(4), ring(3), line(5)}));
  const std::uint32_t chip = 3 + 4 * (1 + 3 * 2);
  EXPECT_EQ(box.fabric.node(box.places.chips[chip]).name, "chip3.1.2");
  EXPECT_EQ(box.places.coordinate(chip, 0), 3U);
  EXPECT_EQ(box.places.coordinate(chip, 1), 1U);
  EXPECT_EQ(box.places.coordinate(chip, 2), 2U);
  EXPECT_EQ(build(torus({line(4)})).fabric.node(NodeId(2)).name, "chip2");
}

TEST(TorusTest, PlacesAreItsAxes) {
  const Places places = build(torus({line(4), ring(3), line(5)})).places;
  ASSERT_EQ(places.levels.size(), 3U);
  const Names names = {"x", "y", "z"};
  const std::vector<std::uint32_t> sizes = {4, 3, 5};
  for (std::size_t level = 0; level < 3; ++level) {
    EXPECT_EQ(places.levels[level].name, names[level]);
    EXPECT_EQ(places.levels[level].size, sizes[level]);
    EXPECT_EQ(places.levels[level].kind, LevelKind::kTorusAxis);
    EXPECT_EQ(places.levels[level].wraps, level == 1);
  }
}

TEST(TorusTest, GoesTheShorterWayRoundAndPlusWhenBothAreEqual) {
  const BuiltTopology even = build(torus({ring(4)}));
  EXPECT_EQ(route_names(even, 0, 1), (Names{"chip0>chip1"}));
  EXPECT_EQ(route_names(even, 0, 3), (Names{"chip0>chip3"})) << "over the wrap, minus";
  EXPECT_EQ(route_names(even, 3, 0), (Names{"chip3>chip0"})) << "over the wrap, plus";
  EXPECT_EQ(route_names(even, 0, 2), (Names{"chip0>chip1", "chip1>chip2"})) << "tie";
  EXPECT_EQ(route_names(even, 2, 0), (Names{"chip2>chip3", "chip3>chip0"})) << "tie";
  EXPECT_EQ(route_names(even, 1, 1), Names{});

  const BuiltTopology odd = build(torus({ring(5)}));
  EXPECT_EQ(route_names(odd, 0, 2), (Names{"chip0>chip1", "chip1>chip2"}));
  EXPECT_EQ(route_names(odd, 0, 3), (Names{"chip0>chip4", "chip4>chip3"}));
}

TEST(TorusTest, StaysInsideAnAxisThatDoesNotWrap) {
  const BuiltTopology chain = build(torus({line(4)}));
  EXPECT_EQ(route_names(chain, 0, 3), (Names{"chip0>chip1", "chip1>chip2", "chip2>chip3"}));
  EXPECT_EQ(route_names(chain, 3, 0), (Names{"chip3>chip2", "chip2>chip1", "chip1>chip0"}));
}

TEST(TorusTest, GoesAlongXThenYThenZ) {
  const BuiltTopology box = build(torus({ring(4), line(3), ring(3)}));
  // From (3, 2, 0) to (0, 0, 2): x over the wrap (plus), y down two, z over the wrap (minus).
  EXPECT_EQ(route_names(box, 3 + 4 * 2, 0 + 4 * (0 + 3 * 2)),
            (Names{"chip3.2.0>chip0.2.0", "chip0.2.0>chip0.1.0", "chip0.1.0>chip0.0.0",
                   "chip0.0.0>chip0.0.2"}));
}

TEST(TorusTest, EveryRouteIsAShortestPath) {
  for (const TorusSpec& spec :
       {torus({ring(4), ring(4), ring(4)}), torus({ring(5), line(4), ring(3)}),
        torus({line(2), line(2), line(1)}), torus({ring(8), line(7)}), torus({ring(3)}),
        torus({line(6)})}) {
    const BuiltTopology built = build(spec);
    const auto chips = static_cast<std::uint32_t>(built.places.chips.size());
    for (std::uint32_t from = 0; from < chips; ++from) {
      const auto hops = hops_from(built.fabric, NodeId(from));
      for (std::uint32_t to = 0; to < chips; ++to) {
        expect_path(built, from, to);
        EXPECT_EQ(route(built, from, to).size(), *hops[to]) << from << " to " << to;
      }
    }
  }
}

TEST(TorusTest, DiameterIsHalfARingOrAWholeLineOnEachAxis) {
  EXPECT_EQ(diameter_in_hops(build(torus({ring(4), ring(4), ring(4)})).fabric), 2U + 2 + 2);
  EXPECT_EQ(diameter_in_hops(build(torus({ring(5), line(4), ring(3)})).fabric), 2U + 3 + 1);
}

TEST(TorusTest, BisectionIsTheCablesAcrossTheLastAxis) {
  // A ring is cut twice, a line once; one cable for each chip of the cut plane.
  EXPECT_EQ(bisection_bandwidth(build(torus({ring(8)})).fabric), 180_GBps);
  EXPECT_EQ(bisection_bandwidth(build(torus({line(8)})).fabric), 90_GBps);
  EXPECT_EQ(bisection_bandwidth(build(torus({line(4), line(4)})).fabric), 360_GBps);
  EXPECT_EQ(bisection_bandwidth(build(torus({ring(4), ring(4), ring(4)})).fabric), 2880_GBps);
  EXPECT_EQ(bisection_bandwidth(build(torus({line(2), line(2)})).fabric), 180_GBps);
}

TEST(TorusTest, AWholeV5pPodIsBuiltAndRouted) {
  const BuiltTopology pod = build(torus({ring(16), ring(20), ring(28)}));
  EXPECT_EQ(pod.places.chips.size(), 8960U);
  EXPECT_EQ(pod.fabric.links().size(), 2U * 3 * 8960);
  EXPECT_TRUE(connected(pod.fabric));
  // From a corner the furthest chip is half a ring away on each axis: 8 + 10 + 14 hops.
  const std::uint32_t furthest = 8 + 16 * (10 + 20 * 14);
  EXPECT_EQ(route(pod, 0, furthest).size(), 32U);
  expect_path(pod, 0, furthest);
  for (std::uint32_t to = 0; to < 8960; to += 7) expect_path(pod, 4711, to);
  // z is cut twice, 16 * 20 cables each: 640 * 90 GB/s.
  EXPECT_EQ(bisection_bandwidth(pod.fabric), 57600_GBps);
}

TEST(TorusTest, RefusesAWrapOnFewerThanThreeChips) {
  EXPECT_TRUE(check(torus({ring(3)})).empty());
  EXPECT_TRUE(check(torus({line(2)})).empty());
  EXPECT_EQ(check(torus({ring(4), ring(2)})),
            (std::vector<Problem>{{"axes[1].wraps",
                                   "needs an axis of at least 3 chips (two chips have one cable "
                                   "between them), size is 2"}}));
}

TEST(TorusTest, RefusesMoreThanTwoToTheTwentyChips) {
  EXPECT_TRUE(check(torus({ring(1024), ring(1024)})).empty());
  EXPECT_EQ(check(torus({ring(1024), ring(1025)})),
            (std::vector<Problem>{{"axes", "must hold at most 1048576 chips, are 1024x1025"}}));
  constexpr int kHuge = 2'147'483'647;
  EXPECT_EQ(check(torus({ring(kHuge), ring(kHuge), ring(kHuge)})).size(), 1U);
}

TEST(TorusTest, ReportsEveryProblemAtOnce) {
  const TorusSpec spec = {.axes = {line(0), ring(1), line(-4), line(1)}, .link_latency = -1ns};
  expect_problems(
      check(spec),
      {{"axes", "must be 1 to 3 (x, y, z), are 4"},
       {"axes[0].size", "must be at least 1, is 0"},
       {"axes[1].wraps",
        "needs an axis of at least 3 chips (two chips have one cable between them), size "
        "is 1"},
       {"axes[2].size", "must be at least 1, is -4"},
       {"link_bandwidth", "must be positive, is 0"},
       {"link_latency", "must be at least 0, is -0.000000001000"}});
  EXPECT_EQ(check(torus({})), (std::vector<Problem>{{"axes", "must be 1 to 3 (x, y, z), are 0"}}));
}

}  // namespace
}  // namespace stepsim
