// Compares schedules through simulate() with replay(), which shares no code with it.

#include "experiment/step/schedule_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/replay/posted_replay.h"
#include "schedules/pipeline/replay/replay.h"
#include "tests/support/golden_schedules.h"

namespace stepsim {
namespace {

void expect_equal(const PipelineSchedule& schedule, const StageCosts& costs,
                  const std::string& title) {
  const PipelineReplay simulated = simulate_schedule(schedule, costs).replayed;
  const PipelineReplay expected = replay(schedule, costs);
  EXPECT_EQ(simulated.starts, expected.starts) << title;
  EXPECT_EQ(simulated.peak_in_flight, expected.peak_in_flight) << title;
  EXPECT_EQ(simulated.makespan, expected.makespan) << title;
  EXPECT_EQ(simulated.ideal, expected.ideal) << title;
  EXPECT_EQ(simulated.span_bubble, expected.span_bubble) << title;
  EXPECT_EQ(simulated.longest_span, expected.longest_span) << title;
}

// All 341 orders from their authors' own code, with all three sets of costs.
TEST(ScheduleRunTest, GoldenOrdersTakeWhatTheirReplaysTook) {
  for (const GoldenSchedule& golden : golden_schedules()) {
    const PipelineSchedule schedule = golden.order();
    for (const auto& [name, costs] : golden_costs()) {
      const ScheduleRun run = simulate_schedule(schedule, costs);
      const nlohmann::json& expected = golden.json["replay"][name];
      EXPECT_EQ(run.replayed.makespan, expected["makespan"]) << golden.title() << " " << name;
      EXPECT_EQ(run.result.end.since_start.count(), expected["makespan"]) << golden.title();
      EXPECT_EQ(run.replayed.bubble(), expected["bubble"]) << golden.title() << " " << name;
      EXPECT_EQ(run.replayed.span_bubble, expected["span_bubble"]) << golden.title() << " " << name;
      EXPECT_EQ(run.replayed.peak_in_flight,
                golden.json["peak_in_flight"].get<std::vector<std::int64_t>>())
          << golden.title() << " " << name;
      expect_equal(schedule, costs, golden.title() + " " + name);
    }
  }
}

// The same with messages in batches and rendezvous.
TEST(ScheduleRunTest, GoldenOrdersInBatchesTakeWhatTheirReplaysTake) {
  for (const GoldenSchedule& golden : golden_schedules()) {
    const PipelineSchedule schedule = golden.order();
    for (const auto& [name, costs] : golden_costs()) {
      const Posting posting = published(golden.request.name).posting.post(schedule, costs);
      const PipelineReplay simulated = simulate_schedule(schedule, costs, {}, &posting).replayed;
      const PipelineReplay expected = replay_posted(schedule, costs, posting);
      EXPECT_EQ(simulated.starts, expected.starts) << golden.title() << " " << name;
      EXPECT_EQ(simulated.makespan, expected.makespan) << golden.title() << " " << name;
      EXPECT_EQ(simulated.span_bubble, expected.span_bubble) << golden.title() << " " << name;
      EXPECT_EQ(simulated.longest_span, expected.longest_span) << golden.title() << " " << name;
      EXPECT_EQ(simulated.peak_in_flight, expected.peak_in_flight) << golden.title();
    }
  }
}

// A rank has a stream for each of them.
TEST(ScheduleRunTest, HundredSendsInFlightAreExact) {
  for (const ScheduleName name : {ScheduleName::kGPipe, ScheduleName::kInterleaved,
                                  ScheduleName::kZeroBubbleVAuto, ScheduleName::kDualPipeV}) {
    ScheduleRequest request{.name = name, .stages = 4, .microbatches = 48};
    request.costs = {1, 1, 1, 60};
    ASSERT_TRUE(check(request).empty()) << name_of(name);
    expect_equal(make_schedule(request), request.costs, std::string(name_of(name)));
  }
}

// Sends that take longer than ops neither overtake nor delay anything. Times go up to the largest
// that a double holds exactly, and beyond it.
TEST(ScheduleRunTest, LongSendsAndLongTimesAreExact) {
  const PipelineCosts sets[] = {{1, 1, 1, 7},
                                {3, 2, 1, 50},
                                {1, 9, 2, 4},
                                {1'000'000'000'001, 999'999'999'999, 1'000'003, 17},
                                {(std::int64_t{1} << 48) + 1, (std::int64_t{1} << 51) + 3, 5, 1}};
  for (const ScheduleName name : all_schedules()) {
    for (const PipelineCosts& costs : sets) {
      ScheduleRequest request{.name = name, .stages = 4, .microbatches = 8, .costs = costs};
      if (name == ScheduleName::kNaive) request.microbatches = 1;
      ASSERT_TRUE(check(request).empty()) << name_of(name);
      expect_equal(make_schedule(request), costs, std::string(name_of(name)));
    }
  }
}

TEST(ScheduleRunTest, UnevenStagesAreExact) {
  for (const ScheduleName name : all_schedules()) {
    for (const std::int64_t send : {0, 1, 40}) {
      ScheduleRequest request{.name = name, .stages = 4, .microbatches = 12};
      if (name == ScheduleName::kNaive) request.microbatches = 1;
      const std::int64_t stages = published(name).stage_count(4, published(name).default_chunks());
      for (std::int64_t stage = 0; stage < stages; ++stage) {
        request.stage_costs.push_back({9 + 5 * stage % 7, 12 - stage, 1 + 3 * stage % 5, send});
      }
      ASSERT_TRUE(check(request).empty()) << name_of(name);
      expect_equal(make_schedule(request), costs_of(request), std::string(name_of(name)));
    }
  }
}

TEST(ScheduleRunTest, OneRankAndTwoRanksNeedNoRing) {
  for (const std::int64_t stages : {1, 2}) {
    const ScheduleRequest request{.name = ScheduleName::kBreadthFirst,
                                  .stages = stages,
                                  .microbatches = 3,
                                  .chunks = 3,
                                  .costs = {10, 12, 8, 1}};
    expect_equal(make_schedule(request), request.costs, std::to_string(stages));
  }
}

}  // namespace
}  // namespace stepsim
