// Compares every schedule with orders from its authors' own code (tests/reference/schedules).

#include "tests/support/golden_schedules.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedules/pipeline/published/bubble_formula.h"
#include "schedules/pipeline/replay/check_order.h"
#include "schedules/pipeline/replay/replay.h"
#include "tests/support/run_schedule.h"

namespace stepsim {
namespace {

std::vector<std::string> text_of(const PipelineSchedule& schedule) {
  std::vector<std::string> ranks;
  for (const auto& order : schedule.ranks) {
    std::string text;
    for (const PipelineOp& op : order) text += (text.empty() ? "" : " ") + to_text(op);
    ranks.push_back(std::move(text));
  }
  return ranks;
}

TEST(GoldenSchedulesTest, AreAllThere) {
  const std::vector<GoldenSchedule> cases = golden_schedules();
  EXPECT_EQ(cases.size(), 341U);
  EXPECT_EQ(std::ranges::count(cases, true, &GoldenSchedule::is_optimum), 22);
  for (const ScheduleName name : all_schedules()) {
    const bool found = std::ranges::any_of(
        cases, [&](const GoldenSchedule& golden) { return golden.request.name == name; });
    EXPECT_EQ(found, published(name).has_reference_orders) << name_of(name);
  }
}

TEST(GoldenSchedulesTest, AreMadeOpForOp) {
  for (const GoldenSchedule& golden : golden_schedules()) {
    ASSERT_TRUE(check(golden.request).empty()) << golden.title();
    if (golden.is_optimum) continue;
    const PipelineSchedule schedule = make_schedule(golden.request);
    const PipelineSchedule expected = golden.order();
    EXPECT_EQ(schedule.placement, expected.placement) << golden.title();
    EXPECT_EQ(schedule.microbatches, expected.microbatches) << golden.title();
    EXPECT_EQ(schedule.chunks, expected.chunks) << golden.title();
    EXPECT_EQ(text_of(schedule), golden.json["per_rank"].get<std::vector<std::string>>())
        << golden.title();
  }
}

TEST(GoldenSchedulesTest, TakeWhatTheyTookInEverySetOfCosts) {
  for (const GoldenSchedule& golden : golden_schedules()) {
    const PipelineSchedule schedule =
        golden.is_optimum ? golden.order() : make_schedule(golden.request);
    for (const auto& [name, costs] : golden_costs()) {
      const PipelineReplay replayed = replay(schedule, costs);
      const nlohmann::json& expected = golden.json["replay"][name];
      EXPECT_EQ(replayed.makespan, expected["makespan"]) << golden.title() << " " << name;
      EXPECT_EQ(replayed.ideal, expected["ideal"]) << golden.title() << " " << name;
      EXPECT_EQ(replayed.bubble(), expected["bubble"]) << golden.title() << " " << name;
      EXPECT_EQ(replayed.span_bubble, expected["span_bubble"]) << golden.title() << " " << name;
      EXPECT_EQ(replayed.peak_in_flight,
                golden.json["peak_in_flight"].get<std::vector<std::int64_t>>())
          << golden.title() << " " << name;
    }
  }
}

// Through simulate() with messages of no bytes: the makespan is the same with rendezvous and with
// sends that don't wait, nothing deadlocks, and the time of every rank is its work and bubble.
TEST(GoldenSchedulesTest, RunInTheGoldenMakespanUnderRendezvousAndEagerly) {
  for (const GoldenSchedule& golden : golden_schedules()) {
    const PipelineSchedule schedule = golden.order();
    for (const auto& [name, costs] : golden_costs()) {
      const auto makespan =
          RunnableSchedule::milliseconds(golden.json["replay"][name]["makespan"].get<int>());
      for (const bool eager : {false, true}) {
        EXPECT_EQ(run_schedule(schedule, costs, eager).step_time, makespan)
            << golden.title() << " " << name << (eager ? " eager" : " rendezvous");
      }
    }
  }
}

// The authors' heuristic reaches the objective of their integer programme in all 22 cases that are
// proven optimal, and of course never beats it.
TEST(GoldenSchedulesTest, HeuristicReachesTheProvenOptimum) {
  for (const GoldenSchedule& golden : golden_schedules()) {
    if (!golden.is_optimum) continue;
    const PipelineReplay heuristic = replay(make_schedule(golden.request), golden.request.costs);
    EXPECT_EQ(heuristic.span_bubble, golden.json["replay"][golden.planned_for]["span_bubble"])
        << golden.title();
    // The memory limit is the same: P micro-batches for 1p, 2 P for 2p.
    const std::int64_t limit = golden.request.name == ScheduleName::kZeroBubbleAuto1P
                                   ? golden.request.stages
                                   : 2 * golden.request.stages;
    EXPECT_LE(std::ranges::max(heuristic.peak_in_flight), limit) << golden.title();
  }
}

TEST(GoldenSchedulesTest, OrdersPassTheChecksOfAUsersFile) {
  for (const GoldenSchedule& golden : golden_schedules()) {
    EXPECT_EQ(check_order(golden.order()), std::vector<Problem>{}) << golden.title();
  }
}

// If a formula's conditions hold, its value is the time of the authors' own order.
TEST(GoldenSchedulesTest, FormulasHoldWhereTheirConditionsDo) {
  int compared = 0;
  for (const GoldenSchedule& golden : golden_schedules()) {
    if (golden.is_optimum) continue;
    for (const auto& [name, costs] : golden_costs()) {
      if (!golden.planned_for.empty() && name != golden.planned_for) continue;
      ScheduleRequest request = golden.request;
      request.costs = costs;
      const std::optional<BubbleFormula> formula = bubble_formula(request);
      ASSERT_TRUE(formula.has_value()) << golden.title();
      if (!formula->holds()) continue;
      const bool is_span = formula->measure == BubbleMeasure::kSpan;
      const std::int64_t bubble = golden.json["replay"][name][is_span ? "span_bubble" : "bubble"];
      EXPECT_EQ(bubble * formula->denominator, formula->numerator)
          << golden.title() << " " << name << ": " << formula->text;
      ++compared;
    }
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace stepsim
