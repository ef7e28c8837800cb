// Axes of a plan laid over levels of a cluster: every rank gets its own chip, mapped axes get their
// levels, and the groups along an axis match the network.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "schedules/lowering/lower.h"
#include "schedules/plan/axis.h"
#include "schedules/plan/communicators.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/hardware/group_shape.h"
#include "sim/run/simulate.h"
#include "tests/support/small_model.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;
using enum PlanAxis;

ParallelPlan plan_of(std::int64_t tp, std::int64_t cp, std::int64_t dp, std::int64_t pp) {
  ParallelPlan plan;
  plan.mesh.tp = tp;
  plan.mesh.cp = cp;
  plan.mesh.dp = dp;
  plan.mesh.pp = pp;
  plan.batch.global_batch = dp * pp;
  plan.batch.sequence = 128;
  return plan;
}

std::vector<Problem> problems(const ParallelPlan& plan, const Places& places) {
  return check(plan, small_model(4), places);
}

bool mentions(const std::vector<Problem>& all, const std::string& field, const std::string& text) {
  return std::ranges::any_of(all, [&](const Problem& problem) {
    return problem.field == field && problem.message.find(text) != std::string::npos;
  });
}

// Returns the chips of the first group of ranks that differ along `axis`.
std::vector<std::uint32_t> group(const ParallelPlan& plan, const Places& places, PlanAxis axis) {
  const std::vector<std::uint32_t> chips = place_ranks(plan.mesh, places);
  const Communicator all = partition(plan.mesh, "group", Axis::kOther, {axis});
  std::vector<std::uint32_t> result;
  for (const RankId rank : all.groups.front()) result.push_back(chips[rank.index()]);
  return result;
}

// The first level of an entry is the innermost: d = y + 2 z, or d = z + 3 y.
TEST(AxisMapTest, LevelsOfAnAxisAreFilledInnermostFirst) {
  const Cluster cluster = torus_of({4, 2, 3}, 1_GBps, {}, {true, false, true});
  ParallelPlan plan = plan_of(4, 1, 6, 1);
  plan.mesh.map = {{kTensor, {"x"}}, {kData, {"y", "z"}}};
  ASSERT_EQ(problems(plan, cluster.places), std::vector<Problem>{});
  EXPECT_EQ(group(plan, cluster.places, kTensor), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(group(plan, cluster.places, kData), (std::vector<std::uint32_t>{0, 4, 8, 12, 16, 20}));
  plan.mesh.map = {{kTensor, {"x"}}, {kData, {"z", "y"}}};
  ASSERT_EQ(problems(plan, cluster.places), std::vector<Problem>{});
  EXPECT_EQ(group(plan, cluster.places, kData), (std::vector<std::uint32_t>{0, 8, 16, 4, 12, 20}));
}

// Maps every axis to every level, in every order. The coordinate along the axis must equal the
// chip's coordinate on the level.
TEST(AxisMapTest, AMappedAxisIsItsLevelInEveryOrder) {
  Places places;
  for (const char* level : {"a", "b", "c", "d"})
    places.levels.push_back({.name = level, .size = 2});
  for (std::uint32_t chip = 0; chip < 16; ++chip) places.chips.emplace_back(chip);
  const ParallelPlan base = plan_of(2, 2, 2, 2);
  std::array<PlanAxis, kPlanAxes> order = {kTensor, kContext, kData, kPipeline};
  std::vector<std::size_t> levels = {0, 1, 2, 3};
  std::ranges::sort(order);
  do {
    do {
      ParallelPlan plan = base;
      plan.mesh.order = order;
      for (std::size_t axis = 0; axis < kPlanAxes; ++axis) {
        plan.mesh.map.push_back({static_cast<PlanAxis>(axis), {places.levels[levels[axis]].name}});
      }
      ASSERT_EQ(problems(plan, places), std::vector<Problem>{});
      const std::vector<std::uint32_t> chips = place_ranks(plan.mesh, places);
      for (std::int64_t rank = 0; rank < 16; ++rank) {
        for (std::size_t axis = 0; axis < kPlanAxes; ++axis) {
          ASSERT_EQ(
              places.coordinate(chips[static_cast<std::size_t>(rank)], levels[axis]),
              static_cast<std::uint32_t>(coordinate(plan.mesh, rank, static_cast<PlanAxis>(axis))));
        }
      }
    } while (std::ranges::next_permutation(levels).found);
  } while (std::ranges::next_permutation(order).found);
}

// dp on x; tp and pp share y and z as one axis of 2 x 4, in the plan's order.
TEST(AxisMapTest, OtherAxesShareTheRemainingLevelsInOrder) {
  const Places places = torus_of({2, 4, 2}, 1_GBps, {}, {false, true, false}).places;
  ParallelPlan plan = plan_of(2, 1, 2, 4);
  plan.mesh.map = {{kData, {"x"}}};
  ASSERT_EQ(problems(plan, places), std::vector<Problem>{});
  EXPECT_EQ(group(plan, places, kTensor), (std::vector<std::uint32_t>{0, 2})) << "next on y";
  EXPECT_EQ(group(plan, places, kPipeline), (std::vector<std::uint32_t>{0, 4, 8, 12}))
      << "every second of y, then z";
  plan.mesh.order = {kPipeline, kTensor, kContext, kData};
  EXPECT_EQ(group(plan, places, kPipeline), (std::vector<std::uint32_t>{0, 2, 4, 6})) << "y";
  EXPECT_EQ(group(plan, places, kTensor), (std::vector<std::uint32_t>{0, 8})) << "z";
}

TEST(AxisMapTest, LevelsOfSwitchesToo) {
  DgxSuperPodSpec spec;
  spec.nodes = 4;
  const Places places = cluster_of(spec).places;
  ParallelPlan plan = plan_of(1, 1, 8, 4);
  plan.mesh.map = {{kPipeline, {"node"}}, {kData, {"gpu"}}};
  ASSERT_EQ(problems(plan, places), std::vector<Problem>{});
  EXPECT_EQ(group(plan, places, kPipeline), (std::vector<std::uint32_t>{0, 8, 16, 24}));
  plan.mesh.map = {{kPipeline, {"scalable_unit"}}};
  EXPECT_TRUE(mentions(problems(plan, places), "map.pp",
                       "names level 'scalable_unit', but the cluster has gpu (8), node (4)"));
}

// An axis over a box of torus axes communicates along all of them, in whatever order they are
// named. Without a mapping it takes the remaining levels.
TEST(AxisMapTest, GroupsHaveTheShapeOfTheirLevels) {
  const Cluster cluster = torus_of({4, 4, 2}, 1_GBps, {}, {true, true, false});
  const GroupDimension ring{.size = 4, .torus_axis = true, .wraps = true};
  const GroupDimension line{.size = 2, .torus_axis = true, .wraps = false};
  const auto shape = [&](const ParallelPlan& plan, PlanAxis axis) {
    EXPECT_EQ(problems(plan, cluster.places), std::vector<Problem>{});
    return describe(cluster, group(plan, cluster.places, axis)).dimensions;
  };
  ParallelPlan plan = plan_of(4, 1, 8, 1);
  EXPECT_EQ(shape(plan, kData), (std::vector<GroupDimension>{ring, line}));
  for (const std::vector<std::string>& levels : {std::vector<std::string>{"x", "z"}, {"z", "x"}}) {
    plan.mesh.map = {{kData, levels}};
    EXPECT_EQ(shape(plan, kData), (std::vector<GroupDimension>{ring, line}));
    EXPECT_EQ(shape(plan, kTensor), (std::vector<GroupDimension>{ring})) << "y";
  }
}

// 2 x 8 chips in rings. With tp on the axis of 2, only its links carry tp's bytes; with dp there,
// only dp's.
TEST(AxisMapTest, EachAxisUsesTheLinksOfItsLevels) {
  const Cluster cluster = torus_of({4, 2}, 1_GBps, {}, {true, false});
  ParallelPlan plan = plan_of(2, 1, 4, 1);
  const auto bytes_on = [&](std::initializer_list<AxisMapping> map, Axis axis) {
    plan.mesh.map = map;
    const OpGraph graph = lower(small_model(4), plan, cluster.places, cluster.chip, {});
    const SimulationResult result = simulate(graph, cluster, {});
    std::array<double, 2> on_level{};
    for (std::uint32_t link = 0; link < cluster.fabric.links().size(); ++link) {
      const auto chip_at = [&](NodeId node) {
        return static_cast<std::uint32_t>(std::ranges::find(cluster.places.chips, node) -
                                          cluster.places.chips.begin());
      };
      const Link& ends = cluster.fabric.link(LinkId(link));
      const bool along_x = cluster.places.coordinate(chip_at(ends.from), 0) !=
                           cluster.places.coordinate(chip_at(ends.to), 0);
      on_level[along_x ? 0 : 1] += result.links[link].bytes;
    }
    return std::pair{on_level, static_cast<double>(
                                   result.bytes_by_axis[static_cast<std::size_t>(axis)].value())};
  };
  const auto [on_y, tensor] = bytes_on({{kTensor, {"y"}}, {kData, {"x"}}}, Axis::kTensor);
  EXPECT_DOUBLE_EQ(on_y[1], tensor);
  const auto [mixed, same] = bytes_on({}, Axis::kTensor);
  EXPECT_DOUBLE_EQ(same, tensor) << "what is sent does not depend on where";
  EXPECT_NE(mixed[1], tensor) << "neighbours on x are the tensor group then";
}

TEST(AxisMapTest, FewerRanksThanChipsLeaveTheLastOnesIdle) {
  const Places places = torus_of({2, 4}, 1_GBps, {}, {false, true}).places;
  ParallelPlan plan = plan_of(2, 1, 3, 1);
  plan.mesh.allow_idle_chips = true;
  plan.mesh.map = {{kTensor, {"x"}}};
  ASSERT_EQ(problems(plan, places), std::vector<Problem>{});
  EXPECT_EQ(place_ranks(plan.mesh, places), (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5}));
  plan.mesh.map = {{kData, {"y"}}};
  EXPECT_TRUE(mentions(problems(plan, places), "map.dp", "its levels have 4 places, but dp is 3"));
}

}  // namespace
}  // namespace stepsim
