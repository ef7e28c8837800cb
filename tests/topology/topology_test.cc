#include "topology/topology.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "tests/support/routes.h"
#include "topology/graph/graph_measures.h"

namespace stepsim {
namespace {

using namespace literals;

TEST(TopologyTest, BuildsWhicheverTopologyTheSpecNames) {
  EXPECT_EQ(build_topology(DgxSuperPodSpec{.nodes = 2}).places.chips.size(), 16U);
  EXPECT_EQ(build_topology(TorusSpec{.axes = {{.size = 4}, {.size = 3}}, .link_bandwidth = 90_GBps})
                .places.chips.size(),
            12U);
}

// Returns one spec of each alternative, in order.
std::vector<TopologySpec> one_of_each() {
  const LeafSpineSpec leaves = {
      .leaves = 20, .hosts_per_leaf = 16, .spines = 4, .host_bandwidth = 50_GBps};
  return {DgxSuperPodSpec{.nodes = 40},
          TorusSpec{.axes = {{.size = 20, .wraps = true}, {.size = 16}}, .link_bandwidth = 90_GBps},
          NvlinkDomainSpec{.gpus = 576},
          PcieBoxSpec{},
          FatTreeSpec{.switch_ports = 12, .link_bandwidth = 50_GBps},
          leaves,
          RailFabricSpec{.nodes = 40},
          DragonflySpec{.groups = 11,
                        .host_bandwidth = 50_GBps,
                        .local_bandwidth = 50_GBps,
                        .global_bandwidth = 50_GBps},
          ExplicitGraphSpec{.nodes = {{"a"}, {"hub", NodeKind::kSwitch}, {"b"}, {"c"}},
                            .links = {{.from = "a", .to = "hub", .bandwidth = 50_GBps},
                                      {.from = "b", .to = "hub", .bandwidth = 50_GBps},
                                      {.from = "c", .to = "hub", .bandwidth = 50_GBps}}},
          TwistedTorusSpec{.shape = {4, 4, 8}, .link_bandwidth = 90_GBps},
          TpuSliceSpec{.generation = TpuGeneration::kV5e, .shape = {8, 16}},
          ComposedSpec{.domain = NvlinkDomainSpec{}, .tiers = {{.count = 40, .fabric = leaves}}}};
}

TEST(TopologyTest, ThereIsOneOfEach) {
  const std::vector<TopologySpec> specs = one_of_each();
  ASSERT_EQ(specs.size(), std::variant_size_v<TopologySpec>);
  for (std::size_t i = 0; i < specs.size(); ++i) EXPECT_EQ(specs[i].index(), i);
}

TEST(TopologyTest, RowsAnswerForTheirSpecs) {
  std::set<std::string_view> names;
  std::apply(
      [&](const auto&... rows) {
        for (const std::string_view name : {rows.name...}) {
          EXPECT_TRUE(names.insert(name).second) << name;
          const std::optional<BlockSpec> block = block_named(name);
          ASSERT_TRUE(block) << name;
          EXPECT_EQ(name_of(*block), name);
        }
      },
      kTopologyKinds);
  EXPECT_EQ(names.size(), std::variant_size_v<BlockSpec>);
  EXPECT_FALSE(block_named("composed"));
  EXPECT_EQ(rails_of(RailFabricSpec{.rails = 4}), 4);
  EXPECT_EQ(rails_of(LeafSpineSpec{}), 1);
  EXPECT_EQ(count_field_of(DgxSuperPodSpec{}), "nodes");
  EXPECT_EQ(inside_of(TopologySpec(PcieBoxSpec{})), HopKind::kPcie);
  EXPECT_EQ(inside_of(TopologySpec(ComposedSpec{.domain = PcieBoxSpec{}})), HopKind::kPcie);
  EXPECT_EQ(inside_of(TopologySpec(NvlinkDomainSpec{})), HopKind::kNvlink);
}

TEST(TopologyTest, ChipNumbersAreTheFirstNodes) {
  for (const TopologySpec& spec : one_of_each()) {
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

TEST(TopologyTest, EveryRouteIsAPath) {
  for (const TopologySpec& spec : one_of_each()) {
    const BuiltTopology built = build_topology(spec);
    EXPECT_TRUE(connected(built.fabric));
    const auto chips = static_cast<std::uint32_t>(built.places.chips.size());
    for (std::uint32_t from = 0; from < chips; from += 7) {
      for (std::uint32_t to = 0; to < chips; ++to) expect_path(built, from, to, from * to);
    }
  }
}

TEST(TopologyTest, TheRouterOutlivesMovesOfItsTopology) {
  for (const TopologySpec& spec : one_of_each()) {
    BuiltTopology first = build_topology(spec);
    const auto last = static_cast<std::uint32_t>(first.places.chips.size() - 1);
    const std::vector<std::string> before = route_names(first, 1, last);
    const BuiltTopology second = std::move(first);
    first = build_topology(DgxSuperPodSpec{});  // reuses what the move left behind
    EXPECT_EQ(route_names(second, 1, last), before);
    expect_path(second, 1, last);
  }
}

TEST(TopologyTest, FaultsSlowLinksAndAreRoutedRound) {
  const TorusSpec ring = {.axes = {{.size = 4, .wraps = true}}, .link_bandwidth = 90_GBps};
  const Faults faults = {
      .links = {{.link = "chip0-chip1", .down = true}, {.link = "chip2>chip3", .capacity = 0.5}}};
  const BuiltTopology built = build_topology(ring, faults);
  EXPECT_EQ(route_names(built, 0, 1),
            (std::vector<std::string>{"chip0>chip3", "chip3>chip2", "chip2>chip1"}));
  EXPECT_EQ(built.fabric.link(route(built, 2, 3).front()).bandwidth, 45_GBps);
  const Faults wrong = {.links = {{.link = "chip0-chip9", .down = true}}};
  ASSERT_EQ(check(TopologySpec(ring), wrong).size(), 1U);
  EXPECT_EQ(check(TopologySpec(ring), wrong).front().field, "faults.links[0].link");
  EXPECT_THROW(build_topology(ring, wrong), ConfigError);
}

TEST(TopologyTest, ThrowsEveryProblemUnderTheNameOfTheTopology) {
  try {
    build_topology(DgxSuperPodSpec{.nodes = 0, .switch_ports = 0});
    FAIL() << "expected ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems(),
              (std::vector<Problem>{{"dgx_superpod.nodes", "must be at least 1, is 0"},
                                    {"dgx_superpod.switch_ports", "must be at least 2, is 0"}}));
  }
  const std::vector<Problem> problems =
      check(TopologySpec(TorusSpec{.axes = {}, .link_bandwidth = 90_GBps}));
  EXPECT_EQ(problems, (std::vector<Problem>{{"torus.axes", "must be 1 to 3 (x, y, z), are 0"}}));
}

}  // namespace
}  // namespace stepsim
