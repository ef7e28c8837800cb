// Compares the search with the integer programme of the zero-bubble authors, with trying every
// order, and with every published schedule.

#include "schedules/pipeline/search/optimal_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>

#include "schedules/pipeline/op_makers.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/replay/check_order.h"
#include "schedules/pipeline/replay/replay.h"
#include "schedules/pipeline/search/greedy_schedule.h"
#include "schedules/pipeline/search/order_polish.h"
#include "schedules/pipeline/search/order_seeds.h"
#include "schedules/pipeline/search/span_bound.h"
#include "tests/support/golden_schedules.h"

namespace stepsim {
namespace {

// Checks that the figures of `optimal` are those of its order.
PipelineReplay expect_sound(const OptimalRequest& request, const OptimalSchedule& optimal,
                            const std::string& title) {
  EXPECT_EQ(check_order(optimal.schedule), std::vector<Problem>{}) << title;
  const StageCosts costs =
      request.stage_costs.empty() ? StageCosts(request.costs) : StageCosts(request.stage_costs);
  const PipelineReplay replayed = replay(optimal.schedule, costs);
  EXPECT_EQ(replayed.longest_span - replayed.ideal, optimal.objective) << title;
  EXPECT_LE(optimal.lower_bound, optimal.objective) << title;
  if (request.memory_limit) {
    EXPECT_LE(std::ranges::max(replayed.peak_in_flight), *request.memory_limit) << title;
  }
  return replayed;
}

TEST(OptimalScheduleTest, ReachesTheIntegerProgrammeWithProof) {
  int cases = 0;
  for (const GoldenSchedule& golden : golden_schedules()) {
    if (!golden.is_optimum) continue;
    const bool is_1p = golden.request.name == ScheduleName::kZeroBubbleAuto1P;
    const OptimalRequest request{.stages = golden.request.stages,
                                 .microbatches = golden.request.microbatches,
                                 .costs = golden.request.costs,
                                 .memory_limit = (is_1p ? 1 : 2) * golden.request.stages};
    const OptimalSchedule optimal = optimal_schedule(request);
    expect_sound(request, optimal, golden.title());
    EXPECT_TRUE(optimal.is_proven) << golden.title();
    EXPECT_EQ(optimal.objective, golden.json["replay"][golden.planned_for]["span_bubble"])
        << golden.title();
    ++cases;
  }
  EXPECT_EQ(cases, 22);
}

// Returns every list of F, B and W of one rank that could run: each kind and chunk in order of
// micro-batches, forwards up the chunks, backwards down, W in order of B, with at most `limit` in
// flight.
std::vector<RankOrder> every_list(std::int32_t microbatches, std::int32_t chunks,
                                  std::int64_t limit) {
  std::vector<RankOrder> lists;
  RankOrder list;
  std::vector<std::int32_t> forwards(static_cast<std::size_t>(chunks), 0);
  std::vector<std::int32_t> backwards = forwards;
  RankOrder due;
  std::size_t weights = 0;
  const std::size_t ops = static_cast<std::size_t>(3 * microbatches * chunks);
  std::int64_t in_flight = 0;
  const std::function<void()> extend = [&] {
    if (list.size() == ops) lists.push_back(list);
    for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
      const auto c = static_cast<std::size_t>(chunk);
      const std::int32_t entered = chunk == 0 ? microbatches : forwards[c - 1];
      if (forwards[c] < entered && in_flight < limit) {
        list.push_back(forward_op(forwards[c]++, chunk));
        ++in_flight;
        extend();
        --in_flight;
        --forwards[c];
        list.pop_back();
      }
      const std::int32_t came_down = chunk + 1 == chunks ? forwards[c] : backwards[c + 1];
      if (backwards[c] < came_down) {
        list.push_back(input_op(backwards[c]++, chunk));
        due.push_back(weight_of(list.back()));
        extend();
        due.pop_back();
        --backwards[c];
        list.pop_back();
      }
    }
    if (weights < due.size()) {
      list.push_back(due[weights++]);
      --in_flight;
      extend();
      ++in_flight;
      --weights;
      list.pop_back();
    }
  };
  extend();
  return lists;
}

// Returns the least excess of the longest span of a rank over its work, over all combinations of
// lists that can run.
std::int64_t least_of_all(const OptimalRequest& request, Placement placement) {
  const StageCosts costs =
      request.stage_costs.empty() ? StageCosts(request.costs) : StageCosts(request.stage_costs);
  const std::vector<RankOrder> lists =
      every_list(static_cast<std::int32_t>(request.microbatches),
                 static_cast<std::int32_t>(request.chunks), *request.memory_limit);
  PipelineSchedule schedule{.microbatches = static_cast<std::int32_t>(request.microbatches),
                            .chunks = static_cast<std::int32_t>(request.chunks),
                            .placement = placement,
                            .ranks = {}};
  std::int64_t least = INT64_MAX;
  const std::function<void()> extend = [&] {
    if (schedule.size() == static_cast<std::int32_t>(request.stages)) {
      if (find_cycle(schedule).empty()) {
        least = std::min(least, replay(schedule, costs).longest_span);
      }
      return;
    }
    for (const RankOrder& list : lists) {
      schedule.ranks.push_back(list);
      extend();
      schedule.ranks.pop_back();
    }
  };
  extend();
  return least;
}

void expect_bound(const OptimalRequest& request, Placement placement, std::int64_t least,
                  const std::string& title) {
  const ScheduleShape shape{static_cast<std::int32_t>(request.stages),
                            static_cast<std::int32_t>(request.microbatches),
                            static_cast<std::int32_t>(request.chunks), placement};
  const StageCosts costs =
      request.stage_costs.empty() ? StageCosts(request.costs) : StageCosts(request.stage_costs);
  EXPECT_LE(span_bound(shape, costs, *request.memory_limit), least) << title;
}

// The least span of all orders in every placement, which the bound of each does not exceed.
std::int64_t least_with_bounds(const OptimalRequest& request, const std::string& title) {
  std::int64_t least = least_of_all(request, Placement::kLoop);
  expect_bound(request, Placement::kLoop, least, title);
  if (request.chunks == 1) return least;
  const std::int64_t least_v = least_of_all(request, Placement::kV);
  expect_bound(request, Placement::kV, least_v, title);
  return std::min(least, least_v);
}

// Stages that differ. If the chunks of a rank differ in W nothing is searched, and the order may be
// a little worse than the best of all.
TEST(OptimalScheduleTest, IsTheBestOfAllOrdersOnUnevenStages) {
  std::mt19937 random(11);
  const auto from_one_to = [&random](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most));
  };
  struct Shape {
    std::int64_t stages, microbatches, chunks, most_memory;
  };
  constexpr Shape kShapes[] = {
      {2, 2, 1, 2}, {2, 3, 1, 3}, {3, 2, 1, 2}, {3, 3, 1, 2}, {2, 2, 2, 3}};
  for (int i = 0; i < 100; ++i) {
    const Shape& shape = kShapes[i % 5];
    OptimalRequest request{
        .stages = shape.stages, .microbatches = shape.microbatches, .chunks = shape.chunks};
    const std::int64_t send = from_one_to(4) - 1;
    const std::int64_t weight = from_one_to(9);
    for (std::int64_t stage = 0; stage < shape.stages * shape.chunks; ++stage) {
      request.stage_costs.push_back(
          {from_one_to(9), from_one_to(9), shape.chunks == 1 ? from_one_to(9) : weight, send});
    }
    request.costs = longest_stage(request.stage_costs);
    request.memory_limit = shape.chunks - 1 + from_one_to(shape.most_memory - shape.chunks + 1);
    const std::string title = "case " + std::to_string(i);
    const OptimalSchedule optimal = optimal_schedule(request);
    const std::int64_t span = expect_sound(request, optimal, title).longest_span;
    EXPECT_TRUE(optimal.is_proven) << title;
    const std::int64_t least = least_with_bounds(request, title);
    EXPECT_EQ(span, least) << title;
  }
}

// W that differ within a rank: no search, but an order that is no worse than the published ones.
TEST(OptimalScheduleTest, ChunksWithOtherWeightTimesAreScheduledAllTheSame) {
  OptimalRequest request{.stages = 3, .microbatches = 6, .chunks = 2, .effort = 2'000'000};
  for (std::int64_t stage = 0; stage < 6; ++stage) {
    request.stage_costs.push_back({4 + stage, 5, 2 + stage, 1});
  }
  request.costs = longest_stage(request.stage_costs);
  request.memory_limit = 6;
  const OptimalSchedule optimal = optimal_schedule(request);
  const PipelineReplay own = expect_sound(request, optimal, "uneven W");
  const ScheduleRequest published{.name = ScheduleName::kZeroBubbleVHand,
                                  .stages = 3,
                                  .microbatches = 6,
                                  .stage_costs = request.stage_costs};
  EXPECT_LE(own.longest_span, replay(make_schedule(published), costs_of(published)).longest_span);
}

// The last forward of rank 0 waits for M - K micro-batches and has all its way to go. So the bubble
// of ZB-H1, (P - 1)(f + b - w + 4 L), cannot be beaten with its memory. By hand for P = 6, M = 15
// and 14, 13, 10, 4: 5 x 17 + 5 x 16 = 165. With one in flight, rank 0 runs M times the way and W.
TEST(SpanBoundTest, IsWhatMemoryForces) {
  EXPECT_EQ(span_bound({6, 15}, PipelineCosts{14, 13, 10, 4}, 6), 15 * 37 + 165);
  EXPECT_EQ(span_bound({3, 4}, PipelineCosts{4, 5, 2, 1}, 1), 4 * (3 * 9 + 4 * 1 + 2));
  EXPECT_EQ(span_bound({1, 7}, PipelineCosts{4, 5, 2, 1}, 7), 7 * 11);
  for (const std::int32_t stages : {8, 16, 32}) {
    const ScheduleRequest h1{.name = ScheduleName::kZeroBubbleH1,
                             .stages = stages,
                             .microbatches = 3 * stages,
                             .costs = {10, 12, 8, 0}};
    EXPECT_EQ(span_bound({stages, 3 * stages}, h1.costs, stages),
              replay(make_schedule(h1), h1.costs).longest_span)
        << stages;
  }
}

TEST(OptimalScheduleTest, IsTheBestOfAllOrders) {
  std::mt19937 random(5);
  const auto from_one_to = [&random](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most));
  };
  int improved = 0;
  struct Shape {
    std::int64_t stages, microbatches, chunks, most_memory;
  };
  constexpr Shape kShapes[] = {{2, 2, 1, 2}, {2, 3, 1, 3}, {3, 2, 1, 2}, {4, 2, 1, 2},
                               {3, 3, 1, 2}, {2, 2, 2, 3}, {3, 2, 2, 2}};
  for (int i = 0; i < 140; ++i) {
    const Shape& shape = kShapes[i % 7];
    OptimalRequest request{
        .stages = shape.stages, .microbatches = shape.microbatches, .chunks = shape.chunks};
    request.costs = {from_one_to(9), from_one_to(9), from_one_to(9), from_one_to(6) - 1};
    request.memory_limit = shape.chunks - 1 + from_one_to(shape.most_memory - shape.chunks + 1);
    const std::string title =
        "P=" + std::to_string(request.stages) + " M=" + std::to_string(request.microbatches) +
        " V=" + std::to_string(request.chunks) + " K=" + std::to_string(*request.memory_limit) +
        " costs " + std::to_string(request.costs.forward) + " " +
        std::to_string(request.costs.backward_input) + " " +
        std::to_string(request.costs.backward_weight) + " " + std::to_string(request.costs.send);
    const OptimalSchedule optimal = optimal_schedule(request);
    expect_sound(request, optimal, title);
    EXPECT_TRUE(optimal.is_proven) << title;
    const std::int64_t least = least_with_bounds(request, title);
    EXPECT_EQ(optimal.objective + request.microbatches * request.chunks * request.costs.all(),
              least)
        << title;
    improved += optimal.origin == "search" ? 1 : 0;
  }
  EXPECT_GT(improved, 5);
}

TEST(OptimalScheduleTest, IsNeverWorseThanWhatIsPublished) {
  int beaten = 0;
  for (const auto& [stages, microbatches, chunks] : {std::tuple<int, int, int>{2, 5, 1},
                                                     {3, 8, 1},
                                                     {4, 8, 2},
                                                     {5, 20, 1},
                                                     {8, 16, 1},
                                                     {4, 12, 3}}) {
    for (const std::int64_t limit :
         {stages * chunks / 2 + 1, stages * chunks, 2 * stages * chunks}) {
      for (const PipelineCosts& costs : {PipelineCosts{10, 12, 8, 1}, PipelineCosts{3, 2, 7, 0}}) {
        const OptimalRequest request{.stages = stages,
                                     .microbatches = microbatches,
                                     .chunks = chunks,
                                     .costs = costs,
                                     .memory_limit = limit,
                                     .effort = 2'000'000};
        const OptimalSchedule optimal = optimal_schedule(request);
        const PipelineReplay own = expect_sound(request, optimal, "");
        std::int64_t best = INT64_MAX;
        for (const ScheduleName name : all_schedules()) {
          ScheduleRequest published{.name = name,
                                    .stages = stages,
                                    .microbatches = microbatches,
                                    .chunks = chunks,
                                    .costs = costs};
          if (!check(published).empty()) continue;
          const PipelineSchedule schedule = make_schedule(published);
          if (schedule.placement == Placement::kBidirectional) continue;  // two copies
          const PipelineReplay replayed = replay(schedule, costs);
          if (std::ranges::max(replayed.peak_in_flight) > limit) continue;
          EXPECT_LE(optimal.objective, replayed.span_bubble) << name_of(name);
          if (optimal.objective == replayed.span_bubble) {
            EXPECT_LE(own.makespan, replayed.makespan) << name_of(name);
          }
          best = std::min(best, replayed.span_bubble);
        }
        beaten += optimal.objective < best ? 1 : 0;
      }
    }
  }
  EXPECT_GT(beaten, 10);
}

TEST(OptimalScheduleTest, IsNeverWorseThanWhatIsPublishedWhateverTheTimes) {
  std::mt19937 random(23);
  const auto between = [&random](std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most - least + 1));
  };
  for (int i = 0; i < 60; ++i) {
    const std::int64_t stages = between(2, 7);
    const std::int64_t chunks = between(1, 2);
    OptimalRequest request{.stages = stages,
                           .microbatches = between(2, 3 * stages),
                           .chunks = chunks,
                           .memory_limit = between(chunks, 2 * stages * chunks),
                           .effort = 500'000};
    const std::int64_t send = between(0, 5);
    const bool is_even = i % 2 == 0;
    for (std::int64_t stage = 0; stage < stages * chunks; ++stage) {
      const PipelineCosts costs{between(1, 20), between(1, 20), between(1, 20), send};
      request.stage_costs.push_back(is_even && stage > 0 ? request.stage_costs[0] : costs);
    }
    request.costs = longest_stage(request.stage_costs);
    const OptimalSchedule optimal = optimal_schedule(request);
    const PipelineReplay own = expect_sound(request, optimal, std::to_string(i));
    for (const ScheduleName name : all_schedules()) {
      ScheduleRequest order{.name = name,
                            .stages = stages,
                            .microbatches = request.microbatches,
                            .chunks = chunks,
                            .costs = request.costs,
                            .stage_costs = request.stage_costs};
      if (!check(order).empty() || published(name).is_bidirectional()) continue;
      const PipelineReplay replayed = replay(make_schedule(order), costs_of(order));
      if (std::ranges::max(replayed.peak_in_flight) > *request.memory_limit) continue;
      EXPECT_LE(own.longest_span, replayed.longest_span) << name_of(name) << " " << i;
    }
  }
}

// With 10, 12, 8 and 2 P micro-batches the authors' heuristic leaves 12 for P = 4, M = 8; the least
// is 10, which their integer programme did not find within its time.
TEST(OptimalScheduleTest, BeatsTheHeuristicWhereItIsNotOptimal) {
  const OptimalRequest request{
      .stages = 4, .microbatches = 8, .costs = {10, 12, 8, 0}, .memory_limit = 8};
  const ScheduleRequest heuristic{.name = ScheduleName::kZeroBubbleAuto2P,
                                  .stages = 4,
                                  .microbatches = 8,
                                  .costs = request.costs};
  EXPECT_EQ(replay(make_schedule(heuristic), request.costs).span_bubble, 12);
  const OptimalSchedule optimal = optimal_schedule(request);
  expect_sound(request, optimal, "");
  EXPECT_EQ(optimal.objective, 10);
  EXPECT_TRUE(optimal.is_proven);
  // ZB-H1's bubble (P - 1)(f + b - w) = 42 is the least that the memory of 1F1B allows.
  OptimalRequest small = request;
  small.memory_limit = 4;
  EXPECT_EQ(optimal_schedule(small).objective, 42);
  EXPECT_TRUE(optimal_schedule(small).is_proven);
}

TEST(OptimalScheduleTest, NeedsNoSearchWhereABoundIsReached) {
  // f = b = w and 2 P in flight: no bubble, at any size.
  const OptimalRequest request{.stages = 16, .microbatches = 64, .memory_limit = 32};
  const OptimalSchedule optimal = optimal_schedule(request);
  EXPECT_EQ(expect_sound(request, optimal, "").span_bubble, 0);
  EXPECT_TRUE(optimal.is_proven);
  // One in flight: each micro-batch goes all the way before the next one enters. W need not wait,
  // but B must: rank 0 idles (P - 1)(f + b + 2 L) per micro-batch.
  const OptimalRequest one{
      .stages = 3, .microbatches = 4, .costs = {4, 5, 2, 1}, .memory_limit = 1};
  const OptimalSchedule sequential = optimal_schedule(one);
  EXPECT_EQ(sequential.objective, 4 * 2 * (4 + 5 + 2));
  EXPECT_TRUE(sequential.is_proven);
}

// With less memory than the published orders were made for, they are several times worse.
TEST(OptimalScheduleTest, IsMuchBetterWhereMemoryIsShort) {
  for (const auto& [stages, limit] : {std::pair<std::int64_t, std::int64_t>{8, 4}, {16, 8}}) {
    const OptimalRequest request{.stages = stages,
                                 .microbatches = 2 * stages,
                                 .costs = {10, 12, 8, 1},
                                 .memory_limit = limit,
                                 .effort = 3'000'000};
    const OptimalSchedule optimal = optimal_schedule(request);
    expect_sound(request, optimal, std::to_string(stages));
    const ScheduleRequest published{.name = ScheduleName::kZeroBubbleAuto1P,
                                    .stages = stages,
                                    .microbatches = 2 * stages,
                                    .costs = request.costs,
                                    .memory_limit = limit};
    EXPECT_LT(3 * optimal.objective, replay(make_schedule(published), request.costs).span_bubble);
  }
}

TEST(OptimalScheduleTest, KeepsToThePlacementGiven) {
  OptimalRequest request{.stages = 4,
                         .microbatches = 8,
                         .chunks = 2,
                         .costs = {10, 12, 8, 1},
                         .memory_limit = 8,
                         .effort = 2'000'000};
  for (const Placement placement : {Placement::kLoop, Placement::kV}) {
    request.placement = placement;
    const OptimalSchedule optimal = optimal_schedule(request);
    expect_sound(request, optimal, "placement");
    EXPECT_EQ(optimal.schedule.placement, placement);
  }
  request.placement = Placement::kBidirectional;
  EXPECT_EQ(check(request).size(), 1U);
}

// List scheduling never gets stuck, whatever the memory and the placement.
TEST(GreedyScheduleTest, IsCompleteWithinItsMemory) {
  for (const std::int32_t chunks : {1, 2, 3, 4}) {
    for (const Placement placement : {Placement::kLoop, Placement::kV}) {
      for (std::int32_t stages = 1; stages <= 7; ++stages) {
        for (const std::int64_t limit : {chunks, chunks + 1, 2 * stages * chunks}) {
          const ScheduleShape shape{stages, 9, chunks, placement};
          const PipelineCosts costs{7, 9, 4, 3};
          for (const GreedyPolicy& policy : greedy_policies(shape, costs, limit)) {
            const PipelineSchedule schedule = greedy_schedule(shape, costs, policy);
            ASSERT_EQ(check_order(schedule), std::vector<Problem>{})
                << stages << " " << chunks << " " << limit;
            EXPECT_LE(std::ranges::max(replay(schedule, costs).peak_in_flight), limit);
          }
        }
      }
    }
  }
}

// ZB auto as published counts on memory for 2 x 4 micro-batches; the second order is planned anew.
TEST(OrderSeedsTest, PlannersAlsoPlanWithinTheMemoryThatIsThere) {
  const OptimalRequest request{.stages = 4, .microbatches = 12, .costs = {10, 12, 8, 1}};
  const StageCosts costs(request.costs);
  const std::string planner(name_of(ScheduleName::kZeroBubbleAuto2P));
  std::vector<std::int64_t> peaks;
  for (const PublishedOrder& order : published_orders(request, costs, 5)) {
    if (order.origin != planner) continue;
    peaks.push_back(std::ranges::max(replay(order.schedule, costs).peak_in_flight));
  }
  ASSERT_EQ(peaks.size(), 2U);
  EXPECT_GT(peaks[0], 5);
  EXPECT_LE(peaks[1], 5);
}

TEST(OrderPolishTest, NeverMakesAnythingWorse) {
  for (const ScheduleName name :
       {ScheduleName::kZeroBubbleAuto1P, ScheduleName::kZeroBubbleVAuto, ScheduleName::kVMin}) {
    const ScheduleRequest request{
        .name = name, .stages = 4, .microbatches = 8, .costs = {10, 12, 8, 1}};
    const PipelineSchedule before = make_schedule(request);
    const PipelineReplay was = replay(before, request.costs);
    const std::int64_t limit = std::ranges::max(was.peak_in_flight);
    const PipelineSchedule after =
        polish(before, request.costs, {.memory_limit = limit, .steps = 3000});
    EXPECT_EQ(check_order(after), std::vector<Problem>{}) << name_of(name);
    const PipelineReplay is = replay(after, request.costs);
    EXPECT_LE(is.span_bubble, was.span_bubble) << name_of(name);
    EXPECT_LE(std::ranges::max(is.peak_in_flight), limit) << name_of(name);
  }
}

TEST(OptimalScheduleTest, IsTheSameEveryTimeAndKnowsNoProofWithoutEffort) {
  const OptimalRequest request{.stages = 6,
                               .microbatches = 18,
                               .costs = {10, 12, 8, 0},
                               .memory_limit = 5,
                               .effort = 3'000'000};
  const OptimalSchedule once = optimal_schedule(request);
  const OptimalSchedule again = optimal_schedule(request);
  EXPECT_EQ(once.schedule.ranks, again.schedule.ranks);
  EXPECT_EQ(once.states, again.states);
  EXPECT_FALSE(once.is_proven);
  EXPECT_LT(once.lower_bound, once.objective);
}

TEST(OptimalScheduleTest, StopsWhenToldTo) {
  OptimalRequest request{.stages = 6, .microbatches = 18, .costs = {10, 12, 8, 0}};
  int calls = 0;
  request.progress_context = &calls;
  request.progress = [](void* context, double done) {
    EXPECT_GE(done, 0);
    return ++*static_cast<int*>(context) < 5;
  };
  const OptimalSchedule optimal = optimal_schedule(request);
  EXPECT_LE(calls, 10);
  EXPECT_EQ(check_order(optimal.schedule), std::vector<Problem>{});
}

TEST(OptimalScheduleTest, RefusesWhatCanNotBe) {
  const auto problems_of = [](const OptimalRequest& request) {
    std::string text;
    for (const Problem& problem : check(request)) {
      text += problem.field + ": " + problem.message + "\n";
    }
    return text;
  };
  EXPECT_EQ(problems_of({.stages = 0,
                         .microbatches = -1,
                         .chunks = 2,
                         .costs = {0, 1, 1, -1},
                         .memory_limit = 1}),
            "stages: must be at least 1, is 0\n"
            "microbatches: must be at least 1, is -1\n"
            "forward_time: must be positive, is 0\n"
            "send_time: must be at least 0, is -1\n"
            "memory_limit: must be at least 2 (a micro-batch on each chunk of a rank), is 1\n");
  EXPECT_EQ(problems_of({.stages = 1, .microbatches = 1, .memory_limit = 1}), "");
}

}  // namespace
}  // namespace stepsim
