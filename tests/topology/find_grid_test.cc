#include "topology/graph/find_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/units.h"
#include "tests/support/linked_chips.h"
#include "tests/support/routes.h"
#include "topology/kinds/torus/torus.h"

namespace stepsim {
namespace {

using namespace literals;
using Sizes = std::vector<std::pair<std::uint32_t, bool>>;

// Sizes of the axes, and whether they wrap, smallest first.
Sizes axes_of(const ExplicitGraphSpec& spec) {
  Sizes sizes;
  if (const auto grid = find_grid(build(spec).fabric)) {
    for (const GridAxis& axis : grid->axes) sizes.emplace_back(axis.size, axis.wraps);
  }
  std::ranges::sort(sizes);
  return sizes;
}

TEST(FindGridTest, FindsLinesAndRingsWhateverTheirNumbers) {
  struct Case {
    std::vector<std::uint32_t> sizes;
    std::vector<bool> wraps;
  };
  for (const Case& of : std::vector<Case>{{{2}, {false}},
                                          {{7}, {false}},
                                          {{3}, {true}},
                                          {{4}, {true}},
                                          {{9}, {true}},
                                          {{2, 3}, {false, false}},
                                          {{3, 3}, {true, true}},
                                          {{4, 8}, {true, true}},
                                          {{8, 2}, {true, false}},
                                          {{4, 4, 4}, {true, true, true}},
                                          {{3, 4, 5}, {true, false, true}},
                                          {{4, 3, 2, 5}, {true, true, false, false}},
                                          {{16, 20}, {true, false}}}) {
    Sizes expected;
    for (std::size_t axis = 0; axis < of.sizes.size(); ++axis) {
      expected.emplace_back(of.sizes[axis], of.wraps[axis]);
    }
    std::ranges::sort(expected);
    const ExplicitGraphSpec spec = linked_grid(of.sizes, of.wraps);
    EXPECT_EQ(axes_of(spec), expected);
    ASSERT_TRUE(find_grid(build(spec).fabric)->in_order());
    for (const unsigned seed : {1U, 2U, 3U}) {
      EXPECT_EQ(axes_of(listed_otherwise(spec, seed)), expected);
    }
  }
}

// Two lines of two are a ring of four, so hypercubes have rings.
TEST(FindGridTest, HypercubesAreRingsOfFour) {
  EXPECT_EQ(axes_of(hypercube(2)), (Sizes{{4, true}}));
  EXPECT_EQ(axes_of(hypercube(3)), (Sizes{{2, false}, {4, true}}));
  EXPECT_EQ(axes_of(hypercube(6)), (Sizes{{4, true}, {4, true}, {4, true}}));
}

TEST(FindGridTest, LinksOfUnequalLinesOfTwoAreNotPutTogether) {
  EXPECT_EQ(axes_of(linked_grid({2, 2}, {false, false}, {1, 2})), (Sizes{{2, false}, {2, false}}));
}

TEST(FindGridTest, OtherGraphsAreNone) {
  EXPECT_EQ(axes_of(dgx1()), Sizes{});
  EXPECT_EQ(axes_of(petersen()), Sizes{});
  EXPECT_EQ(axes_of(fully_linked(4)), Sizes{});
  EXPECT_EQ(axes_of(circulant(16, {1, 3})), Sizes{});
  EXPECT_EQ(axes_of(hamming_mesh(2, 2, 2, 2)), Sizes{}) << "has switches";
  ExplicitGraphSpec torus = linked_grid({4, 4}, {true, true});
  torus.links.pop_back();
  EXPECT_EQ(axes_of(torus), Sizes{}) << "a link is missing";
  torus = linked_grid({4, 4}, {true, true});
  torus.links.push_back({.from = "c0", .to = "c5", .bandwidth = 1_GBps});
  EXPECT_EQ(axes_of(torus), Sizes{}) << "a link too many";
  torus = linked_grid({4, 4}, {true, true});
  torus.links[0].one_way = true;
  torus.links.push_back(
      {.from = torus.links[0].to, .to = torus.links[0].from, .bandwidth = 1_GBps, .one_way = true});
  EXPECT_EQ(axes_of(torus), Sizes{}) << "a cable whose directions differ";
}

TEST(FindGridTest, LevelsThatAreTheAxesBecomeTorusAxes) {
  ExplicitGraphSpec spec = linked_grid({2, 8}, {false, true});
  spec.levels = {{"dimension0", 2}, {"dimension1", 8}};
  const std::vector<Level> levels = build(spec).places.levels;
  ASSERT_EQ(levels.size(), 2U);
  EXPECT_EQ(levels[0].name, "dimension0");
  EXPECT_EQ(levels[0].kind, LevelKind::kTorusAxis);
  EXPECT_FALSE(levels[0].wraps);
  EXPECT_TRUE(levels[1].wraps);
}

TEST(FindGridTest, OtherLevelsStayAndTheGridIsBesideThem) {
  ExplicitGraphSpec spec = linked_grid({4, 8}, {true, true});
  spec.levels = {{"node", 8}, {"rack", 4}};
  const Places places = build(spec).places;
  EXPECT_EQ(places.levels[0].name, "node");
  EXPECT_EQ(places.levels[0].kind, LevelKind::kSwitched);
  ASSERT_TRUE(places.grid);
  EXPECT_EQ(places.grid->axes[0].size, 4U);
}

TEST(FindGridTest, UnnamedAxesAreCalledLikeThoseOfATorus) {
  TorusSpec torus;
  torus.axes = {{4, true}, {3, false}};
  torus.link_bandwidth = kLinkedWidth;
  const Places built = build(torus).places;
  const Places found = build(linked_grid({4, 3}, {true, false})).places;
  ASSERT_EQ(found.levels.size(), 2U);
  for (std::size_t level = 0; level < 2; ++level) {
    EXPECT_EQ(found.levels[level].name, built.levels[level].name);
    EXPECT_EQ(found.levels[level].size, built.levels[level].size);
    EXPECT_EQ(found.levels[level].wraps, built.levels[level].wraps);
  }
  EXPECT_FALSE(found.grid);
}

TEST(FindGridTest, RoutesGoInDimensionOrder) {
  ExplicitGraphSpec spec = linked_grid({4, 4}, {true, true});
  using Names = std::vector<std::string>;
  EXPECT_EQ(route_names(build(spec), 0, 6), (Names{"c0>c1", "c1>c2", "c2>c6"}));
  EXPECT_EQ(route_names(build(spec), 0, 15), (Names{"c0>c3", "c3>c15"}));
  spec.routes = {{"c0", "c4", "c5", "c6"}};
  EXPECT_EQ(route_names(build(spec), 0, 6), (Names{"c0>c4", "c4>c5", "c5>c6"})) << "listed";
}

}  // namespace
}  // namespace stepsim
