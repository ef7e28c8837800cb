#include "topology/kinds/torus/twisted_torus.h"

#include <gtest/gtest.h>

#include "tests/support/routes.h"
#include "topology/graph/bisection.h"
#include "topology/graph/graph_measures.h"

namespace stepsim {
namespace {

using namespace literals;
using Names = std::vector<std::string>;

BuiltTopology twisted(std::vector<int> shape) {
  const TwistedTorusSpec spec = {.shape = std::move(shape), .link_bandwidth = 45_GBps};
  EXPECT_TRUE(check(spec).empty());
  return build(spec);
}

std::uint32_t chip(const std::vector<int>& shape, int x, int y, int z) {
  return static_cast<std::uint32_t>(x + shape[0] * (y + shape[1] * z));
}

bool has_link(const BuiltTopology& built, std::uint32_t from, std::uint32_t to) {
  for (const Link& link : built.fabric.links()) {
    if (link.from == NodeId(from) && link.to == NodeId(to)) return true;
  }
  return false;
}

TEST(TwistedTorusTest, HasSixCablesAChip) {
  const BuiltTopology built = twisted({4, 4, 8});
  EXPECT_EQ(built.places.chips.size(), 128U);
  ASSERT_EQ(built.fabric.links().size(), 6U * 128);
  std::vector<int> leaving(128, 0);
  for (const Link& link : built.fabric.links()) ++leaving[link.from.index()];
  EXPECT_EQ(leaving, std::vector<int>(128, 6));
}

TEST(TwistedTorusTest, ShiftsTheWrapsOfShortAxesOnly) {
  const std::vector<int> shape = {4, 4, 8};
  const BuiltTopology built = twisted(shape);
  // K = 4: from (3, 1, 2) plus along x to (0, 1, 6), not to (0, 1, 2).
  EXPECT_TRUE(has_link(built, chip(shape, 3, 1, 2), chip(shape, 0, 1, 6)));
  EXPECT_FALSE(has_link(built, chip(shape, 3, 1, 2), chip(shape, 0, 1, 2)));
  EXPECT_TRUE(has_link(built, chip(shape, 0, 1, 6), chip(shape, 3, 1, 2))) << "and back";
  EXPECT_TRUE(has_link(built, chip(shape, 1, 3, 6), chip(shape, 1, 0, 2))) << "y, 6 + 4 mod 8";
  EXPECT_TRUE(has_link(built, chip(shape, 1, 1, 7), chip(shape, 1, 1, 0))) << "z is a ring";
  EXPECT_TRUE(has_link(built, chip(shape, 1, 1, 2), chip(shape, 2, 1, 2))) << "inside the box";
}

TEST(TwistedTorusTest, ShiftsOnBothLongAxesWhereThereAreTwo) {
  const std::vector<int> shape = {4, 8, 8};
  const BuiltTopology built = twisted(shape);
  EXPECT_TRUE(has_link(built, chip(shape, 3, 1, 2), chip(shape, 0, 5, 6)));
  EXPECT_TRUE(has_link(built, chip(shape, 1, 7, 2), chip(shape, 1, 0, 2)));
  EXPECT_TRUE(has_link(built, chip(shape, 1, 2, 7), chip(shape, 1, 2, 0)));
}

// Eight hops along a short axis of four come back to the start, having seen both halves of z.
TEST(TwistedTorusTest, AShortAxisIsHalfOfARing) {
  const std::vector<int> shape = {4, 4, 8};
  const BuiltTopology built = twisted(shape);
  EXPECT_EQ(route_names(built, chip(shape, 3, 0, 0), chip(shape, 0, 0, 4)),
            (Names{"chip3.0.0>chip0.0.4"}));
  EXPECT_EQ(route_names(built, chip(shape, 3, 0, 4), chip(shape, 0, 0, 0)),
            (Names{"chip3.0.4>chip0.0.0"}));
}

TEST(TwistedTorusTest, TiesGoPlusAndXFirst) {
  const std::vector<int> shape = {4, 4, 8};
  const BuiltTopology built = twisted(shape);
  // (0, 0, 4) is 4 hops away along z, and 4 along x or y either way round: x plus wins.
  EXPECT_EQ(route_names(built, 0, chip(shape, 0, 0, 4)),
            (Names{"chip0.0.0>chip1.0.0", "chip1.0.0>chip2.0.0", "chip2.0.0>chip3.0.0",
                   "chip3.0.0>chip0.0.4"}));
  // (2, 0, 0): two hops plus beat two wraps; (2, 0, 4): 2 + 4 against 2 minus over the wrap.
  EXPECT_EQ(route_names(built, 0, chip(shape, 2, 0, 4)),
            (Names{"chip0.0.0>chip3.0.4", "chip3.0.4>chip2.0.4"}));
}

TEST(TwistedTorusTest, EveryRouteIsAShortestPath) {
  for (const std::vector<int>& shape : std::vector<std::vector<int>>{
           {4, 4, 8}, {4, 8, 8}, {8, 4, 4}, {4, 8, 4}, {8, 4, 8}, {2, 2, 4}, {3, 6, 6}}) {
    const BuiltTopology built = twisted(shape);
    const auto chips = static_cast<std::uint32_t>(built.places.chips.size());
    for (std::uint32_t from = 0; from < chips; from += 5) {
      const auto hops = hops_from(built.fabric, NodeId(from));
      for (std::uint32_t to = 0; to < chips; ++to) {
        expect_path(built, from, to);
        EXPECT_EQ(route(built, from, to).size(), *hops[to]) << from << " to " << to;
      }
    }
  }
}

// With a, b <= K/2 and z <= K from the centre: a + b + z hops inside the box, or K - a + b + K - z
// over the wrap of x. Their sum is 2K + 2b, so the smaller one is at most K + b <= 1.5 K. For two
// long axes: a + y + z or (K - a) + (K - y) + (K - z), sum 3K, so 1.5 K again.
TEST(TwistedTorusTest, DiameterIsOneAndAHalfK) {
  EXPECT_EQ(diameter_in_hops(twisted({4, 4, 8}).fabric), 6U) << "8 without the twist";
  EXPECT_EQ(diameter_in_hops(twisted({4, 8, 8}).fabric), 6U) << "10 without the twist";
  EXPECT_EQ(diameter_in_hops(twisted({8, 8, 16}).fabric), 12U);
}

// Between z < 4 and z >= 4: 2 K^2 cables along z, and all wraps of x and y, K x 2K each: 6 K^2. A
// plain torus has its least cut there, 2 K^2. Across the middle of x: K x 2K cables and as many
// wraps, 4 K^2, as without the twist: the least.
TEST(TwistedTorusTest, DoublesTheLeastCutOfThePlainTorus) {
  EXPECT_EQ(bisection_bandwidth(twisted({4, 4, 8}).fabric), 4 * 16 * 45_GBps);
  // K x 2K x 2K: 2 * 4 * 8 along z, and the wraps of x: 8 * 8.
  EXPECT_EQ(bisection_bandwidth(twisted({4, 8, 8}).fabric), (64 + 64) * 45_GBps);
}

TEST(TwistedTorusTest, OnlyLongAxesSayThatTheyWrap) {
  const Places places = twisted({4, 8, 8}).places;
  EXPECT_FALSE(places.levels[0].wraps);
  EXPECT_TRUE(places.levels[1].wraps);
  EXPECT_TRUE(places.levels[2].wraps);
  EXPECT_EQ(places.levels[0].kind, LevelKind::kTorusAxis);
}

TEST(TwistedTorusTest, RefusesOtherShapes) {
  const std::string rule = "must be K x K x 2K or K x 2K x 2K in any order, K from 2 to 64, is ";
  for (const std::vector<int>& shape : std::vector<std::vector<int>>{
           {4, 4, 4}, {4, 4, 12}, {4, 8, 16}, {4, 8}, {1, 1, 2}, {0, 0, 0}, {128, 128, 256}}) {
    const auto problems = check(TwistedTorusSpec{.shape = shape, .link_bandwidth = 45_GBps});
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_EQ(problems[0].field, "shape");
    EXPECT_EQ(problems[0].message.substr(0, rule.size()), rule);
  }
  EXPECT_EQ(check({.shape = {4, 4, 8}, .link_latency = -1ns}).size(), 2U) << "and no bandwidth";
}

}  // namespace
}  // namespace stepsim
