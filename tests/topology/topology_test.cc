#include "topology/topology.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/topology/routes.h"

namespace stepsim {
namespace {

using namespace literals;

TEST(TopologyTest, BuildsWhicheverTopologyTheSpecNames) {
  EXPECT_EQ(build_topology(DgxSuperPodSpec{.nodes = 2}).places.chips.size(), 16U);
  EXPECT_EQ(build_topology(TorusSpec{.axes = {{.size = 4}, {.size = 3}}, .link_bandwidth = 90_GBps})
                .places.chips.size(),
            12U);
}

TEST(TopologyTest, ChipNumbersAreTheFirstNodes) {
  const std::vector<TopologySpec> specs = {
      DgxSuperPodSpec{.nodes = 5},
      TorusSpec{.axes = {{.size = 3, .wraps = true}}, .link_bandwidth = 90_GBps}};
  for (const TopologySpec& spec : specs) {
    const BuiltTopology built = build_topology(spec);
    std::uint32_t box = 1;
    for (const Level& level : built.places.levels) box *= level.size;
    ASSERT_EQ(built.places.chips.size(), box) << "a full box of its levels";
    for (std::uint32_t node = 0; node < built.fabric.nodes().size(); ++node) {
      EXPECT_EQ(built.fabric.node(NodeId(node)).kind == NodeKind::kChip, node < box);
    }
    for (std::uint32_t chip = 0; chip < box; ++chip) {
      EXPECT_EQ(built.places.chips[chip], NodeId(chip));
    }
  }
}

TEST(TopologyTest, TheRouterOutlivesMovesOfItsTopology) {
  const std::vector<TopologySpec> specs = {
      DgxSuperPodSpec{.nodes = 40},
      TorusSpec{.axes = {{.size = 20, .wraps = true}, {.size = 16}}, .link_bandwidth = 90_GBps}};
  for (const TopologySpec& spec : specs) {
    BuiltTopology first = build_topology(spec);
    const std::vector<std::string> before = route_names(first, 1, 318);
    const BuiltTopology second = std::move(first);
    first = build_topology(DgxSuperPodSpec{});  // reuses what the move left behind
    EXPECT_EQ(route_names(second, 1, 318), before);
    expect_path(second, 1, 318);
  }
}

TEST(TopologyTest, ThrowsEveryProblemUnderTheNameOfTheTopology) {
  try {
    build_topology(DgxSuperPodSpec{.nodes = 0, .switch_ports = 0});
    FAIL() << "expected ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems(),
              (std::vector<Problem>{{"dgx_superpod.nodes", "must be at least 1, is 0"},
                                    {"dgx_superpod.switch_ports", "must be 2 to 1024, is 0"}}));
  }
  const std::vector<Problem> problems =
      check(TopologySpec(TorusSpec{.axes = {}, .link_bandwidth = 90_GBps}));
  EXPECT_EQ(problems, (std::vector<Problem>{{"torus.axes", "must be 1 to 3 (x, y, z), are 0"}}));
}

}  // namespace
}  // namespace stepsim
