// Stages that take different times: cutting them anew, replaying and planning.

#include "schedules/pipeline/stage_costs.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "schedules/pipeline/published/bubble_formula.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/replay/check_order.h"
#include "schedules/pipeline/replay/replay.h"
#include "schedules/pipeline/schedule_file.h"
#include "tests/support/reference_folder.h"

namespace stepsim {
namespace {

const std::vector<PipelineCosts> kUneven = {
    {4, 6, 2, 1}, {4, 6, 2, 1}, {10, 12, 8, 1}, {6, 4, 4, 1}};

TEST(StageCostsTest, StagesThatAreAlikeAreOne) {
  const StageCosts same = std::vector<PipelineCosts>(5, {10, 12, 8, 1});
  EXPECT_TRUE(same.are_even());
  EXPECT_EQ(same.at(4), (PipelineCosts{10, 12, 8, 1}));
  const StageCosts uneven = kUneven;
  EXPECT_FALSE(uneven.are_even());
  EXPECT_EQ(uneven.at(2).forward, 10);
  EXPECT_EQ(longest_stage(uneven), (PipelineCosts{10, 12, 8, 1}));
  EXPECT_EQ(median_stage(uneven), (PipelineCosts{4, 6, 2, 1}));  // the lower of the middle two
  EXPECT_EQ(unit_of(uneven), 1);
  EXPECT_EQ(in_units(StageCosts(std::vector<PipelineCosts>{{4, 6, 2, 8}, {8, 2, 2, 8}}), 2).at(1),
            (PipelineCosts{4, 1, 1, 4}));
}

// Stage 2 of four, 10 of forward, is stages 4 and 5 of eight, 5 each; two stages are the sums of
// two each. In halves of the unit everything is double.
TEST(StageCostsTest, AreCutAnew) {
  const StageCosts eight = recut(kUneven, 4, 8, 2);
  EXPECT_EQ(eight.listed().size(), 8U);
  EXPECT_EQ(eight.at(4), (PipelineCosts{10, 12, 8, 2}));
  EXPECT_EQ(eight.at(5), (PipelineCosts{10, 12, 8, 2}));
  EXPECT_EQ(eight.at(7), (PipelineCosts{6, 4, 4, 2}));
  const StageCosts two = recut(kUneven, 4, 2, 1);
  EXPECT_EQ(two.at(0), (PipelineCosts{8, 12, 4, 1}));
  EXPECT_EQ(two.at(1), (PipelineCosts{16, 16, 12, 1}));
  // Four into six: a stage of six is two thirds of one of four.
  const StageCosts six = recut(kUneven, 4, 6, 3);
  EXPECT_EQ(six.at(0).forward, 2 * 4);
  EXPECT_EQ(six.at(3).forward, 2 * 10);
  EXPECT_EQ(six.at(4).forward, 10 + 6);
  EXPECT_EQ(recut(PipelineCosts{4, 6, 2, 1}, 4, 8, 2).at(0), (PipelineCosts{4, 6, 2, 2}));
}

// A fused op takes its forward's stage and its backward's.
TEST(StageCostsTest, AFusedOpTakesBothStages) {
  const PipelineSchedule schedule =
      parse_schedule("placement: v\nF0.0 F0.1 F1.0 FB1.1/0.1 BW0.0 BW1.1 BW1.0");
  const StageCosts costs = std::vector<PipelineCosts>{{1, 2, 3}, {10, 20, 30}};
  const PipelineOp fused{PipelineOpKind::kForwardBackward, 1, 0, 0, 1};
  EXPECT_EQ(time_of(schedule, 0, fused, costs), 1 + 50);
  EXPECT_EQ(time_of(schedule, 0, {PipelineOpKind::kBackward, 0, 1}, costs), 50);
  EXPECT_EQ(replay(schedule, costs).makespan, 2 * (1 + 10 + 50 + 5));
}

TEST(StageCostsTest, ZeroBubbleAutoPlansAsItsAuthorsDo) {
  std::ifstream file(reference_folder() / "uneven_schedules" / "zb_auto.jsonl");
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const nlohmann::json json = nlohmann::json::parse(line);
    ScheduleRequest request;
    request.name = schedule_named(json["schedule"].get<std::string>()).value();
    request.stages = json["stages"];
    request.microbatches = json["microbatches"];
    for (std::size_t stage = 0; stage < json["forward"].size(); ++stage) {
      request.stage_costs.push_back({json["forward"][stage], json["backward_input"][stage],
                                     json["backward_weight"][stage], json["send"]});
    }
    ASSERT_TRUE(check(request).empty()) << line;
    const PipelineSchedule schedule = make_schedule(request);
    std::string text;
    for (const auto& rank : json["per_rank"]) text += rank.get<std::string>() + "\n";
    EXPECT_EQ(schedule.ranks, parse_schedule(text).ranks) << line;
    EXPECT_EQ(replay(schedule, costs_of(request)).longest_span, json["longest_span"]) << line;
  }
  EXPECT_EQ(cases, 24);
}

// A quick rank behind slow ones has time for more forwards in its warm-up than there are. This was
// found by trying; the authors' own code only requires that all of them run.
TEST(StageCostsTest, ZeroBubbleAutoRunsWhateverTheTimes) {
  std::mt19937 random(3);
  const auto between = [&random](std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most - least + 1));
  };
  for (int i = 0; i < 400; ++i) {
    const bool is_1p = between(0, 1) == 0;
    ScheduleRequest request{
        .name = is_1p ? ScheduleName::kZeroBubbleAuto1P : ScheduleName::kZeroBubbleAuto2P,
        .stages = between(2, 18)};
    request.microbatches = between(1, 2 * request.stages);
    const std::int64_t send = between(0, 3);
    for (std::int64_t stage = 0; stage < request.stages; ++stage) {
      request.stage_costs.push_back({between(1, 20), between(1, 20), between(1, 20), send});
    }
    if (between(0, 1) == 0) request.memory = ActivationMemory{100, between(1, 100)};
    if (between(0, 1) == 0) request.memory_limit = between(1, 3 * request.stages);
    ASSERT_EQ(check_order(make_schedule(request)), std::vector<Problem>{}) << i;
  }
}

TEST(StageCostsTest, EveryScheduleRunsOnThem) {
  for (const ScheduleName name : all_schedules()) {
    ScheduleRequest request{.name = name, .stages = 4, .microbatches = 8};
    if (name == ScheduleName::kNaive) request.microbatches = 1;
    const std::int64_t stages = published(name).stage_count(4, published(name).default_chunks());
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      request.stage_costs.push_back({5 + stage % 3, 7, 2 + stage % 2, 1});
    }
    ASSERT_TRUE(check(request).empty()) << name_of(name);
    const PipelineSchedule schedule = make_schedule(request);
    EXPECT_EQ(check_order(schedule), std::vector<Problem>{}) << name_of(name);
    EXPECT_EQ(stage_count(schedule), stages) << name_of(name);
    const PipelineReplay replayed = replay(schedule, costs_of(request));
    EXPECT_GE(replayed.bubble(), 0) << name_of(name);
    EXPECT_GE(replayed.longest_span, replayed.ideal) << name_of(name);
    const auto formula = bubble_formula(request);
    if (formula) {
      EXPECT_FALSE(formula->holds()) << name_of(name);
    }
  }
}

TEST(StageCostsTest, WhatIsWrongWithThemIsSaid) {
  ScheduleRequest request{.name = ScheduleName::kDualPipeV, .stages = 2, .microbatches = 4};
  request.stage_costs = {{1, 1, 1, 0}, {1, 0, 1, 0}, {2, 1, 1, 5}};
  request.costs.fused = 3;
  std::string text;
  for (const Problem& problem : check(request)) {
    text += problem.field + ": " + problem.message + "\n";
  }
  EXPECT_EQ(text,
            "stage_costs: must be one of each of the 4 global stages, are 3\n"
            "stage_costs: must be positive and at most 4611686018427387904\n"
            "stage_costs: must have the same send time\n"
            "fused_time: must not be given if stages differ: an op may fuse a forward of one "
            "stage with a backward of another\n");
}

}  // namespace
}  // namespace stepsim
