#include "topology/kinds/explicit_graph.h"

#include <gtest/gtest.h>

#include "sim/base/quantity_text.h"
#include "tests/support/problems.h"
#include "tests/support/routes.h"
#include "topology/graph/graph_measures.h"

namespace stepsim {
namespace {

using namespace literals;
using Names = std::vector<std::string>;

ExplicitLink cable(std::string from, std::string to, Duration latency = {}) {
  return {.from = std::move(from), .to = std::move(to), .bandwidth = 10_GBps, .latency = latency};
}

//   a -- s1 -- b       the upper way is shorter in hops, the lower one in time
//   |          |
//   s2 -- s3 --+
ExplicitGraphSpec two_ways() {
  return {.nodes = {{"s1", NodeKind::kSwitch},
                    {"a"},
                    {"s2", NodeKind::kSwitch},
                    {"b"},
                    {"s3", NodeKind::kSwitch}},
          .links = {cable("a", "s1", 5us), cable("s1", "b", 5us), cable("a", "s2", 1us),
                    cable("s2", "s3", 1us), cable("s3", "b", 1us)}};
}

std::vector<std::string> fields_of(const std::vector<Problem>& problems) {
  std::vector<std::string> fields;
  for (const Problem& problem : problems) fields.push_back(problem.field);
  return fields;
}

TEST(ExplicitGraphTest, NumbersChipsFirstInTheOrderOfTheList) {
  ASSERT_TRUE(check(two_ways()).empty());
  const BuiltTopology built = build(two_ways());
  ASSERT_EQ(built.places.chips, (std::vector<NodeId>{NodeId(0), NodeId(1)}));
  EXPECT_EQ(built.fabric.node(NodeId(0)).name, "a");
  EXPECT_EQ(built.fabric.node(NodeId(1)).name, "b");
  EXPECT_EQ(built.fabric.node(NodeId(2)).name, "s1");
  EXPECT_EQ(built.fabric.links().size(), 10U);
  ASSERT_EQ(built.places.levels.size(), 1U);
  EXPECT_EQ(built.places.levels[0].name, "chip");
  EXPECT_EQ(built.places.levels[0].size, 2U);
}

TEST(ExplicitGraphTest, RoutesByHopsOrByLatency) {
  EXPECT_EQ(route_names(build(two_ways()), 0, 1), (Names{"a>s1", "s1>b"}));
  ExplicitGraphSpec fast = two_ways();
  fast.metric = PathMetric::kLatency;  // 3 us against 10
  EXPECT_EQ(route_names(build(fast), 0, 1), (Names{"a>s2", "s2>s3", "s3>b"}));
  EXPECT_EQ(route_names(build(fast), 1, 0), (Names{"b>s3", "s3>s2", "s2>a"}));
  for (ExplicitLink& link : fast.links) link.latency = {};
  EXPECT_EQ(route_names(build(fast), 0, 1), (Names{"a>s1", "s1>b"})) << "equal: fewest hops";
}

TEST(ExplicitGraphTest, TiesGoToTheLinkThatIsListedFirst) {
  ExplicitGraphSpec spec = {
      .nodes = {{"a"}, {"b"}, {"p", NodeKind::kSwitch}, {"q", NodeKind::kSwitch}},
      .links = {cable("q", "b"), cable("a", "q"), cable("p", "b"), cable("a", "p")}};
  EXPECT_EQ(route_names(build(spec), 0, 1), (Names{"a>q", "q>b"}));
  std::swap(spec.links[1], spec.links[3]);
  EXPECT_EQ(route_names(build(spec), 0, 1), (Names{"a>p", "p>b"}));
}

TEST(ExplicitGraphTest, ARouteOfItsOwnWins) {
  ExplicitGraphSpec spec = two_ways();
  spec.routes = {{"a", "s2", "s3", "b"}};
  ASSERT_TRUE(check(spec).empty());
  EXPECT_EQ(route_names(build(spec), 0, 1), (Names{"a>s2", "s2>s3", "s3>b"}));
  EXPECT_EQ(route_names(build(spec), 1, 0), (Names{"b>s1", "s1>a"})) << "this way none was given";
}

TEST(ExplicitGraphTest, MayPassThroughChips) {
  const BuiltTopology line =
      build({.nodes = {{"a"}, {"b"}, {"c"}}, .links = {cable("a", "b"), cable("b", "c")}});
  EXPECT_EQ(route_names(line, 0, 2), (Names{"a>b", "b>c"}));
  EXPECT_EQ(route_names(line, 1, 1), Names{});
}

TEST(ExplicitGraphTest, OneWayLinksAreOneWay) {
  ExplicitGraphSpec ring = {.nodes = {{"a"}, {"b"}, {"c"}},
                            .links = {cable("a", "b"), cable("b", "c"), cable("c", "a")}};
  for (ExplicitLink& link : ring.links) link.one_way = true;
  ASSERT_TRUE(check(ring).empty());
  EXPECT_EQ(build(ring).fabric.links().size(), 3U);
  EXPECT_EQ(route_names(build(ring), 1, 0), (Names{"b>c", "c>a"}));
  ring.links.pop_back();
  EXPECT_EQ(check(ring),
            (std::vector<Problem>{
                {"links", "must join all chips in both directions; b, c are cut off"}}));
}

TEST(ExplicitGraphTest, HasTheLevelsThatAreGiven) {
  ExplicitGraphSpec spec = {.nodes = {{"hub", NodeKind::kSwitch}}};
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    spec.nodes.push_back({name});
    spec.links.push_back(cable(name, "hub"));
  }
  spec.levels = {{"gpu", 2}, {"node", 3}};
  ASSERT_TRUE(check(spec).empty());
  const Places places = build(spec).places;
  EXPECT_EQ(places.coordinate(5, 0), 1U);
  EXPECT_EQ(places.coordinate(5, 1), 2U);
  spec.levels = {{"gpu", 2}, {"gpu", 2}, {"", 0}};
  EXPECT_EQ(fields_of(check(spec)),
            (Names{"levels[2].size", "levels[1].name", "levels[2].name", "levels"}));
}

TEST(ExplicitGraphTest, ReportsEveryProblemOfTheListsAtOnce) {
  const ExplicitGraphSpec spec = {
      .nodes = {{"a"}, {"a"}, {"b>c"}, {"d"}, {"s", NodeKind::kSwitch}},
      .links = {cable("a", "nowhere"),
                {.from = "a", .to = "d", .bandwidth = Bandwidth(0), .latency = -1ns},
                cable("d", "a"),
                cable("d", "d")},
      .routes = {{"a"}, {"a", "s", "d"}, {"s", "d"}, {"a", "d"}, {"a", "d"}}};
  expect_problems(
      check(spec),
      {{"nodes[1].name", "a is listed twice"},
       {"nodes[2].name", "must be letters, digits, '.', '_' or '-', is \"b>c\""},
       {"links[0].to", "\"nowhere\" is no node of the list"},
       {"links[1].bandwidth", "must be positive, is 0"},
       {"links[1].latency", "must be at least 0, is -0.000000001000"},
       {"links[2]", "d>a is listed twice; parallel cables are one link of their summed bandwidth"},
       {"links[2]", "a>d is listed twice; parallel cables are one link of their summed bandwidth"},
       {"links[3].to", "must be another node than from, both are d"},
       {"routes[0]", "must name at least two nodes, names 1"},
       {"routes[1]", "there is no link a>s"},
       {"routes[1]", "there is no link s>d"},
       {"routes[2]", "must lead from chip to chip, \"s\" is none"},
       {"routes[2]", "there is no link s>d"},
       {"routes[3]", "routes[1] leads from a to d too"},
       {"routes[4]", "routes[1] leads from a to d too"},
       {"routes[4]", "routes[3] leads from a to d too"}});
}

TEST(ExplicitGraphTest, RefusesChipsThatDoNotReachEachOther) {
  const ExplicitGraphSpec spec = {
      .nodes = {{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"s", NodeKind::kSwitch}},
      .links = {cable("a", "b"), cable("c", "s"), cable("d", "s"), cable("e", "s")}};
  EXPECT_EQ(check(spec), (std::vector<Problem>{{"links",
                                                "must join all chips in both directions; "
                                                "a, b are cut off"}}));
  EXPECT_EQ(check(ExplicitGraphSpec{}),
            (std::vector<Problem>{{"nodes", "must hold 1 to 1048576 chips, hold 0"}}));
  EXPECT_TRUE(check({.nodes = {{"alone"}}}).empty());
}

}  // namespace
}  // namespace stepsim
