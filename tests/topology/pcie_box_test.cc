#include "topology/kinds/switched/pcie_box.h"

#include <gtest/gtest.h>

#include "tests/support/routes.h"
#include "topology/graph/bisection.h"
#include "topology/graph/graph_measures.h"

namespace stepsim {
namespace {

using namespace literals;
using Names = std::vector<std::string>;

TEST(PcieBoxTest, RoutesTurnRoundInTheFirstThingThatIsShared) {
  const BuiltTopology box = build(PcieBoxSpec{});  // 8 GPUs, 2 a switch, 2 sockets
  EXPECT_EQ(route_names(box, 0, 0), Names{});
  EXPECT_EQ(route_names(box, 0, 1), (Names{"gpu0>switch0", "switch0>gpu1"}));
  EXPECT_EQ(route_names(box, 0, 3),
            (Names{"gpu0>switch0", "switch0>socket0", "socket0>switch1", "switch1>gpu3"}));
  EXPECT_EQ(route_names(box, 7, 0), (Names{"gpu7>switch3", "switch3>socket1", "socket1>socket0",
                                           "socket0>switch0", "switch0>gpu0"}));
}

TEST(PcieBoxTest, EveryRouteIsAShortestPath) {
  for (const PcieBoxSpec& spec :
       {PcieBoxSpec{}, PcieBoxSpec{.gpus = 4, .gpus_per_switch = 4, .sockets = 1},
        PcieBoxSpec{.gpus = 8, .gpus_per_switch = 4}, PcieBoxSpec{.gpus = 6, .sockets = 1}}) {
    const BuiltTopology box = build(spec);
    EXPECT_TRUE(connected(box.fabric));
    const auto gpus = static_cast<std::uint32_t>(spec.gpus);
    for (std::uint32_t from = 0; from < gpus; ++from) {
      const auto hops = hops_from(box.fabric, NodeId(from));
      for (std::uint32_t to = 0; to < gpus; ++to) {
        expect_path(box, from, to);
        EXPECT_EQ(route(box, from, to).size(), *hops[to]);
      }
    }
  }
}

TEST(PcieBoxTest, SocketsAreTheNarrowestPlace) {
  EXPECT_EQ(bisection_bandwidth(build(PcieBoxSpec{.socket_bandwidth = 20_GBps}).fabric), 20_GBps);
  // Without a second socket: two switches up to the processor on either side.
  EXPECT_EQ(bisection_bandwidth(build(PcieBoxSpec{.sockets = 1}).fabric), 64_GBps);
}

TEST(PcieBoxTest, PlacesAreGpuSwitchAndSocket) {
  const Places places = build(PcieBoxSpec{}).places;
  ASSERT_EQ(places.levels.size(), 3U);
  EXPECT_EQ(places.levels[1].name, "pcie_switch");
  EXPECT_EQ(places.levels[2].size, 2U);
  const Places wide = build(PcieBoxSpec{.gpus = 8, .gpus_per_switch = 4}).places;
  ASSERT_EQ(wide.levels.size(), 2U) << "one switch a socket";
  EXPECT_EQ(wide.levels[1].name, "socket");
}

TEST(PcieBoxTest, ReportsEveryProblemAtOnce) {
  EXPECT_EQ(
      check(PcieBoxSpec{.gpus = 6}),
      (std::vector<Problem>{
          {"gpus", "must be a multiple of 4 (2 a switch, as many on each of 2 sockets), is 6"}}));
  EXPECT_EQ(check(PcieBoxSpec{.gpus = 0,
                              .gpus_per_switch = 0,
                              .sockets = 3,
                              .gpu_bandwidth = Bandwidth(0),
                              .socket_bandwidth = Bandwidth(-1),
                              .link_latency = -1ns})
                .size(),
            6U);
}

}  // namespace
}  // namespace stepsim
