// Compares refine() with what equitable colourings must be, on random graphs and on graphs that are
// several copies of a small one.

#include "sim/folding/colour_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace stepsim {
namespace {

using Random = std::mt19937;

struct Edge {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t label = 0;
};
struct Drawing {
  std::vector<std::uint32_t> colours;
  std::vector<Edge> edges;
};

std::uint32_t below(Random& random, std::uint32_t count) {
  return static_cast<std::uint32_t>(random() % count);
}

Drawing random_drawing(Random& random) {
  Drawing drawing;
  const std::uint32_t vertices = 1 + below(random, 12);
  for (std::uint32_t v = 0; v < vertices; ++v) drawing.colours.push_back(below(random, 2));
  const std::uint32_t edges = below(random, 2 * vertices + 1);
  for (std::uint32_t e = 0; e < edges; ++e) {
    drawing.edges.push_back({below(random, vertices), below(random, vertices), below(random, 2)});
  }
  return drawing;
}

ColourGraph graph_of(const Drawing& drawing) {
  ColourGraphBuilder builder;
  for (const std::uint32_t colour : drawing.colours) builder.add_vertex(colour);
  for (const Edge& edge : drawing.edges) builder.add_edge(edge.a, edge.b, edge.label);
  return std::move(builder).build();
}

std::size_t count(const std::vector<std::uint32_t>& colours) {
  return std::set<std::uint32_t>(colours.begin(), colours.end()).size();
}

// `copies` of a drawing in which each edge leads from a copy to that copy or another one: every
// vertex still sees what it saw.
Drawing lifted(const Drawing& drawing, std::uint32_t copies, Random& random) {
  const auto vertices = static_cast<std::uint32_t>(drawing.colours.size());
  std::vector<std::uint32_t> names(std::size_t{vertices} * copies);
  std::iota(names.begin(), names.end(), 0U);
  std::ranges::shuffle(names, random);
  Drawing result;
  result.colours.resize(names.size());
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    result.colours[names[i]] = drawing.colours[i % vertices];
  }
  for (const Edge& edge : drawing.edges) {
    const std::uint32_t shift = edge.a == edge.b ? 0 : below(random, copies);
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      result.edges.push_back({names[copy * vertices + edge.a],
                              names[(copy + shift) % copies * vertices + edge.b], edge.label});
    }
  }
  std::ranges::shuffle(result.edges, random);
  return result;
}

TEST(ColourGraphTest, ColouringsAreEquitable) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const ColourGraph graph = graph_of(random_drawing(random));
    EXPECT_TRUE(is_equitable(graph, refine(graph))) << i;
  }
}

// The coarsest one is unique, so no merge of two colours may be equitable.
TEST(ColourGraphTest, NoTwoColoursCanBeMerged) {
  Random random(2);
  for (int i = 0; i < 500; ++i) {
    const ColourGraph graph = graph_of(random_drawing(random));
    const std::vector<std::uint32_t> colours = refine(graph);
    const auto all = static_cast<std::uint32_t>(count(colours));
    for (std::uint32_t a = 0; a < all; ++a) {
      for (std::uint32_t b = a + 1; b < all; ++b) {
        std::vector<std::uint32_t> merged = colours;
        std::ranges::replace(merged, b, a);
        EXPECT_FALSE(is_equitable(graph, merged)) << i;
      }
    }
  }
}

TEST(ColourGraphTest, CopiesOfAGraphHaveItsColours) {
  Random random(3);
  for (int i = 0; i < 500; ++i) {
    const Drawing small = random_drawing(random);
    const std::size_t colours = count(refine(graph_of(small)));
    const Drawing large = lifted(small, 2 + below(random, 4), random);
    EXPECT_EQ(count(refine(graph_of(large))), colours) << i;
  }
}

TEST(ColourGraphTest, LabelsAndFirstColoursKeepVerticesApart) {
  // Two pairs of vertices, alike but for what is given.
  const auto colours = [](std::uint32_t colour, std::uint32_t label) {
    return refine(graph_of({.colours = {0, 0, 0, colour}, .edges = {{0, 1, 0}, {2, 3, label}}}));
  };
  EXPECT_EQ(count(colours(0, 0)), 1U);
  EXPECT_EQ(count(colours(1, 0)), 3U);
  EXPECT_EQ(count(colours(0, 1)), 2U);
}

TEST(ColourGraphTest, ADifferenceSpreadsAsFarAsItIsSeen) {
  // A ring of twelve in which one is marked: only mirror images are alike.
  Drawing ring{.colours = std::vector<std::uint32_t>(12, 0), .edges = {}};
  for (std::uint32_t v = 0; v < 12; ++v) ring.edges.push_back({v, (v + 1) % 12, 0});
  EXPECT_EQ(count(refine(graph_of(ring))), 1U);
  ring.colours[0] = 1;
  EXPECT_EQ(refine(graph_of(ring)),
            (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1}));
}

TEST(ColourGraphTest, AMergeThatIsNotEquitableIsSeen) {
  const ColourGraph graph = graph_of({.colours = {0, 0, 0}, .edges = {{0, 1, 0}}});
  EXPECT_FALSE(is_equitable(graph, {0, 0, 0}));
  EXPECT_TRUE(is_equitable(graph, {0, 0, 1}));
}

}  // namespace
}  // namespace stepsim
