// Requests: which are refused and how, and what every schedule guarantees at any size.

#include "schedules/pipeline/published/make_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "schedules/pipeline/orders/interleaved.h"
#include "schedules/pipeline/published/bubble_formula.h"
#include "schedules/pipeline/replay/check_order.h"
#include "schedules/pipeline/replay/replay.h"

namespace stepsim {
namespace {

// All problems, a line each.
std::string problems_of(const ScheduleRequest& request) {
  std::string text;
  for (const Problem& problem : check(request)) {
    text += problem.field + ": " + problem.message + "\n";
  }
  return text;
}

TEST(MakeScheduleTest, RefusesTooFewMicrobatchesWithTheNearestLegalNumber) {
  EXPECT_EQ(problems_of({.name = ScheduleName::kZeroBubbleH1, .stages = 4, .microbatches = 7}),
            "microbatches: must be at least 2 x stages = 8 for zb_h1, is 7; nearest legal: 8\n");
  EXPECT_EQ(problems_of({.name = ScheduleName::kZeroBubbleH1, .stages = 4, .microbatches = 8}), "");
  EXPECT_EQ(problems_of({.name = ScheduleName::kZeroBubbleH2, .stages = 4, .microbatches = 7}),
            "microbatches: must be at least 2 x stages = 8 for zb_h2, is 7; nearest legal: 8\n");
  EXPECT_EQ(
      problems_of({.name = ScheduleName::kDualPipeV, .stages = 4, .microbatches = 7}),
      "microbatches: must be at least 2 x stages = 8 for dualpipev, is 7; nearest legal: 8\n");
  EXPECT_EQ(problems_of({.name = ScheduleName::kDualPipeV, .stages = 4, .microbatches = 9}), "");
}

TEST(MakeScheduleTest, RefusesOddNumbersOfTwoDirectionsAllAtOnce) {
  EXPECT_EQ(
      problems_of({.name = ScheduleName::kDualPipe, .stages = 5, .microbatches = 13}),
      "stages: must be even for dualpipe (two directions), is 5; nearest legal: 4 and 6\n"
      "microbatches: must be even (both directions together) and at least 2 x stages = 10 for "
      "dualpipe, is 13; nearest legal: 12 and 14\n");
  EXPECT_EQ(
      problems_of({.name = ScheduleName::kChimera, .stages = 1, .microbatches = 3}),
      "stages: must be even for chimera (two directions), is 1; nearest legal: 2\n"
      "microbatches: must be even (half of them in each direction) for chimera, is 3; nearest "
      "legal: 2 and 4\n");
}

TEST(MakeScheduleTest, RefusesGroupsThatDoNotComeOut) {
  // 9 div 4 = 2 rounds, and 9 is odd.
  EXPECT_EQ(problems_of({.name = ScheduleName::kInterleaved, .stages = 4, .microbatches = 9}),
            "microbatches: must be at least stages = 4 and a multiple of max(1, microbatches div "
            "stages), which makes equal groups, unless a microbatch_group is given (5, 9) for "
            "interleaved_1f1b, is 9; nearest legal: 8 and 10\n");
  EXPECT_EQ(problems_of({.name = ScheduleName::kInterleaved, .stages = 4, .microbatches = 3}),
            "microbatches: must be at least stages = 4 and a multiple of max(1, microbatches div "
            "stages), which makes equal groups, unless a microbatch_group is given for "
            "interleaved_1f1b, is 3; nearest legal: 4\n");
  EXPECT_EQ(
      problems_of({.name = ScheduleName::kInterleavedZeroBubble, .stages = 4, .microbatches = 9}),
      "microbatches: must be a multiple of max(1, microbatches div stages), which makes equal "
      "groups, unless a microbatch_group is given (5, 9) for interleaved_zb1p, is 9; nearest "
      "legal: 8 and 10\n");
  EXPECT_EQ(
      problems_of({.name = ScheduleName::kInterleavedZeroBubble, .stages = 4, .microbatches = 3}),
      "");
  // In groups of 5: 5 and 4, and 4 is enough. In groups of 6: 6 and 3, too few. 7: 7 and 2.
  ScheduleRequest request{
      .name = ScheduleName::kInterleaved, .stages = 4, .microbatches = 9, .microbatch_group = 5};
  EXPECT_EQ(problems_of(request), "");
  request.microbatch_group = 6;
  EXPECT_EQ(
      problems_of(request),
      "microbatch_group: must be 4 (stages) to 9 (microbatches), and microbatches mod it 0 or "
      "at least 4; is 6; nearest legal: 5 and 9\n");
  request.microbatch_group = 3;
  EXPECT_EQ(
      problems_of(request),
      "microbatch_group: must be 4 (stages) to 9 (microbatches), and microbatches mod it 0 or "
      "at least 4; is 3; nearest legal: 5\n");
  EXPECT_EQ(
      problems_of(
          {.name = ScheduleName::kGPipe, .stages = 4, .microbatches = 8, .microbatch_group = 4}),
      "microbatch_group: must not be given for gpipe: only interleaved_1f1b and "
      "interleaved_zb1p have groups; is 4\n");
}

TEST(MakeScheduleTest, RefusesAVWithoutAWayBack) {
  EXPECT_EQ(problems_of({.name = ScheduleName::kDualPipeV, .stages = 1, .microbatches = 2}),
            "stages: must be at least 2 for dualpipev, is 1\n");
  EXPECT_EQ(problems_of({.name = ScheduleName::kDualPipeV, .stages = 2, .microbatches = 4}), "");
}

TEST(MakeScheduleTest, RefusesWhatIsNoNumberOfChunks) {
  EXPECT_EQ(problems_of({.stages = 4, .microbatches = 8, .chunks = 2}),
            "chunks: must be 1 for 1f1b, is 2\n");
  EXPECT_EQ(problems_of({.name = ScheduleName::kVMin, .stages = 4, .microbatches = 8, .chunks = 1}),
            "chunks: must be 2 for v_min, is 1\n");
  EXPECT_EQ(
      problems_of({.name = ScheduleName::kHanayo, .stages = 4, .microbatches = 8, .chunks = 3}),
      "chunks: must be even for hanayo (two a wave), is 3; nearest legal: 2 and 4\n");
  EXPECT_EQ(problems_of(
                {.name = ScheduleName::kBreadthFirst, .stages = 4, .microbatches = 8, .chunks = 0}),
            "chunks: must be at least 1, is 0\n");
}

TEST(MakeScheduleTest, RefusesEveryWrongNumberAtOnce) {
  EXPECT_EQ(problems_of({.stages = 0,
                         .microbatches = -3,
                         .chunks = 7,
                         .costs = {0, -1, 0, -5},
                         .memory_limit = 3}),
            "stages: must be at least 1, is 0\n"
            "microbatches: must be at least 1, is -3\n"
            "chunks: must be 1 for 1f1b, is 7\n"
            "memory_limit: must not be given for 1f1b: only zb_auto_1p, zb_auto_2p, zbv_auto and "
            "optimal are planned within one; is 3\n"
            "forward_time: must be positive, is 0\n"
            "backward_input_time: must be positive, is -1\n"
            "backward_weight_time: must be positive, is 0\n"
            "send_time: must be at least 0, is -5\n");
  EXPECT_EQ(problems_of({.name = ScheduleName::kNaive, .stages = 4, .microbatches = 2}),
            "microbatches: must be 1 (naive_sequential runs more) for naive, is 2; nearest legal: "
            "1\n");
  EXPECT_EQ(problems_of({.name = ScheduleName::kZeroBubbleVAuto,
                         .stages = 4,
                         .microbatches = 8,
                         .memory_limit = 7}),
            "memory_limit: must be at least 2 x stages = 8 chunks for zbv_auto, is 7\n");
}

TEST(MakeScheduleTest, RefusesWhatWouldNotFitInMemoryOrInSixtyFourBits) {
  EXPECT_EQ(problems_of({.stages = 1 << 16, .microbatches = 1 << 20}),
            "microbatches: stages x microbatches x chunks must be at most 16777216, is 65536 x "
            "1048576 x 1\n");
  EXPECT_EQ(problems_of({.stages = 1 << 16, .microbatches = 1 << 8}), "");
  // 2^62 / 8 forwards / 6 times an op at most.
  ScheduleRequest request{.stages = 2, .microbatches = 4};
  request.costs.backward_weight = (std::int64_t{1} << 62) / 48 + 1;
  EXPECT_EQ(problems_of(request),
            "backward_weight_time: must be at most 96076792050570581 ps for so many ops\n");
  --request.costs.backward_weight;
  EXPECT_EQ(problems_of(request), "");
}

// Calls visit(request) for every legal request of these sizes.
template <typename Visit>
void for_each_size(const Visit& visit) {
  for (const ScheduleName name : all_schedules()) {
    for (std::int64_t stages = 1; stages <= 16; ++stages) {
      for (const std::int64_t microbatches : {1, 2, 3, 5, 8, 12, 17, 32, 33}) {
        for (const std::int64_t chunks : {1, 2, 3, 4}) {
          for (const std::int64_t extra : {-1, 0, 1, 5}) {
            ScheduleRequest request{.name = name,
                                    .stages = stages,
                                    .microbatches = microbatches,
                                    .chunks = chunks,
                                    .costs = {10, 12, 8, 1}};
            if (extra >= 0) request.microbatch_group = stages + extra;
            if (check(request).empty()) visit(request);
          }
        }
      }
    }
  }
}

std::string title(const ScheduleRequest& request) {
  return std::string(name_of(request.name)) + " P=" + std::to_string(request.stages) +
         " M=" + std::to_string(request.microbatches) + " V=" + std::to_string(*request.chunks) +
         " N=" + std::to_string(request.microbatch_group.value_or(0));
}

TEST(MakeScheduleTest, EveryScheduleIsCompleteAndRunsWhateverItsSize) {
  int schedules = 0;
  for_each_size([&](const ScheduleRequest& request) {
    EXPECT_EQ(check_order(make_schedule(request)), std::vector<Problem>{}) << title(request);
    ++schedules;
  });
  EXPECT_GT(schedules, 4000);
}

TEST(MakeScheduleTest, OneRankNeverWaits) {
  for (const ScheduleName name : all_schedules()) {
    ScheduleRequest request{.name = name, .stages = 1, .microbatches = 6, .costs = {10, 12, 8, 1}};
    if (name == ScheduleName::kNaive) request.microbatches = 1;
    if (!check(request).empty()) continue;  // two directions need two ranks
    EXPECT_EQ(replay(make_schedule(request), request.costs).bubble(), 0) << name_of(name);
  }
}

// The closed forms of memory that each schedule's header states.
TEST(MakeScheduleTest, KeepsAsManyActivationsAsPublished) {
  for_each_size([](const ScheduleRequest& request) {
    const std::int64_t p = request.stages;
    const std::int64_t m = request.microbatches;
    const std::int64_t v = *request.chunks;
    const std::int64_t n =
        request.microbatch_group.value_or(default_microbatch_group(p, m).value_or(0));
    const auto published = [&](std::int64_t r) -> std::optional<std::int64_t> {
      switch (request.name) {
        case ScheduleName::kNaive:
        case ScheduleName::kNaiveSequential:
          return 1;
        case ScheduleName::kGPipe:
        case ScheduleName::kGPipeLifo:
          return m;
        case ScheduleName::kBreadthFirst:
        case ScheduleName::kBreadthFirstLifo:
          return m * v;
        case ScheduleName::kOneForwardOneBackward:
          return std::min(p - r, m);
        case ScheduleName::kEagerOneForwardOneBackward:
          return std::min(2 * (p - r) - 1, m);
        case ScheduleName::kInterleaved:
          return std::min(2 * (p - 1 - r) + (v - 1) * n + 1, m * v);
        case ScheduleName::kZeroBubbleH1:
          return p;
        case ScheduleName::kZeroBubbleH2:
          return 2 * p - 1;
        case ScheduleName::kZeroBubbleVHand:
          return m >= 2 * p ? std::optional(2 * p) : std::nullopt;
        case ScheduleName::kDualPipe:
          return p + 1;
        case ScheduleName::kDualPipeV:
          return 2 * p + 1;
        case ScheduleName::kChimera:
          return m >= p ? std::optional(p / 2 + 1 + std::min(r, p - 1 - r)) : std::nullopt;
        default:
          return std::nullopt;
      }
    };
    const PipelineReplay replayed = replay(make_schedule(request), request.costs);
    for (std::int64_t rank = 0; rank < p; ++rank) {
      const std::int64_t peak = replayed.peak_in_flight[static_cast<std::size_t>(rank)];
      EXPECT_EQ(peak, published(rank).value_or(peak)) << title(request) << " rank " << rank;
    }
    const std::int64_t most = std::ranges::max(replayed.peak_in_flight);
    const auto at_most = [&]() -> std::optional<std::int64_t> {
      switch (request.name) {
        case ScheduleName::kZeroBubbleAuto1P:
          return p;
        case ScheduleName::kZeroBubbleAuto2P:
        case ScheduleName::kZeroBubbleVAuto:
          return 2 * p;
        default:
          return std::nullopt;
      }
    };
    EXPECT_LE(most, at_most().value_or(most)) << title(request);
  });
}

// With equal costs and M >= 2 P: the exact memory, and the exact values, in times of a chunk,
// behind "about half" and "about two thirds" of 1F1B's bubble.
TEST(MakeScheduleTest, ControllableMemoryIsExact) {
  for (std::int64_t p = 2; p <= 16; ++p) {
    for (const std::int64_t m : {2 * p, 3 * p + 1}) {
      const auto replayed = [&](ScheduleName name) {
        const ScheduleRequest request{.name = name, .stages = p, .microbatches = m};
        return replay(make_schedule(request), request.costs);
      };
      const PipelineReplay half = replayed(ScheduleName::kVHalf);
      EXPECT_EQ(half.bubble(), p == 2 ? 1 : p % 2 == 0 ? 3 * p - 7 : 3 * p - 4) << p;
      EXPECT_EQ(std::ranges::max(half.peak_in_flight), 2 * ((p + 2) / 2)) << p;
      const PipelineReplay least = replayed(ScheduleName::kVMin);
      EXPECT_EQ(least.bubble(), p % 3 == 0 ? 4 * p - 7 : 4 * p - 5) << p;
      EXPECT_EQ(std::ranges::max(least.peak_in_flight), 2 * ((p + 4) / 3)) << p;
    }
  }
}

// DualPipe replayed, for b <= f: (P/2 - 1)(2 f + b - min(b, w)), which is the published
// (P/2 - 1)(f + 2 b - w) where f = b and w <= b. DualPipeV is the same with 2 P stages.
TEST(MakeScheduleTest, BubbleOfDualPipeIsExactForShortBackwards) {
  for (const PipelineCosts& costs : {PipelineCosts{10, 10, 8}, PipelineCosts{10, 7, 3},
                                     PipelineCosts{10, 4, 9}, PipelineCosts{5, 5, 12}}) {
    const std::int64_t each = 2 * costs.forward + costs.backward_input -
                              std::min(costs.backward_input, costs.backward_weight);
    for (std::int64_t p = 2; p <= 16; p += 2) {
      for (const ScheduleName name : {ScheduleName::kDualPipe, ScheduleName::kDualPipeV}) {
        const ScheduleRequest request{
            .name = name, .stages = p, .microbatches = 2 * p + 4, .costs = costs};
        const std::int64_t outer = name == ScheduleName::kDualPipe ? p / 2 - 1 : p - 1;
        EXPECT_EQ(replay(make_schedule(request), costs).bubble(), outer * each)
            << name_of(name) << " " << p;
      }
    }
  }
}

// More memory than 2 P lets ZB auto reach no bubble with T_F, T_B, T_W = 10, 12, 8: 2.5 P are
// enough for P = 4, 3 P for P = 8.
TEST(MakeScheduleTest, PlansWithinTheMemoryLimitGiven) {
  const auto span_bubble = [](std::int64_t stages, std::int64_t limit) {
    const ScheduleRequest request{.name = ScheduleName::kZeroBubbleAuto2P,
                                  .stages = stages,
                                  .microbatches = 4 * stages,
                                  .costs = {10, 12, 8, 0},
                                  .memory_limit = limit};
    const PipelineReplay replayed = replay(make_schedule(request), request.costs);
    EXPECT_LE(std::ranges::max(replayed.peak_in_flight), limit);
    return replayed.span_bubble;
  };
  EXPECT_EQ(span_bubble(4, 8), 12);
  EXPECT_EQ(span_bubble(4, 10), 0);
  EXPECT_EQ(span_bubble(8, 16), 34);
  EXPECT_EQ(span_bubble(8, 24), 0);
}

TEST(MakeScheduleTest, SchedulesMeetWhereTheyAreTheSame) {
  const auto ranks = [](ScheduleName name, std::optional<std::int64_t> chunks = {}) {
    return make_schedule({.name = name, .stages = 4, .microbatches = 12, .chunks = chunks}).ranks;
  };
  EXPECT_EQ(ranks(ScheduleName::kInterleavedZeroBubble, 1), ranks(ScheduleName::kZeroBubbleH1));
  EXPECT_EQ(ranks(ScheduleName::kInterleaved, 1), ranks(ScheduleName::kEagerOneForwardOneBackward));
  EXPECT_EQ(ranks(ScheduleName::kBreadthFirst, 1), ranks(ScheduleName::kGPipe));
  EXPECT_EQ(ranks(ScheduleName::kBreadthFirstLifo, 1), ranks(ScheduleName::kGPipeLifo));
}

// Random requests, seed fixed: where a formula's conditions hold it gives the replayed bubble.
TEST(BubbleFormulaTest, IsTheReplayedBubbleWhereItsConditionsHold) {
  std::mt19937 random(11);
  const auto from_one_to = [&random](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most));
  };
  for (const ScheduleName name : all_schedules()) {
    int compared = 0;
    for (int i = 0; i < 3000; ++i) {
      ScheduleRequest request{.name = name,
                              .stages = from_one_to(10),
                              .microbatches = name == ScheduleName::kNaive ? 1 : from_one_to(40)};
      if (published(name).default_chunks() == 2 && from_one_to(2) == 1)
        request.chunks = from_one_to(4);
      PipelineCosts& costs = request.costs;
      costs.forward = from_one_to(12);
      costs.backward_input = from_one_to(2) == 1 ? costs.forward : from_one_to(12);
      costs.backward_weight = from_one_to(2) == 1 ? costs.backward_input : from_one_to(12);
      costs.send = from_one_to(2) == 1 ? 0 : from_one_to(6);
      if (!check(request).empty()) continue;
      const std::optional<BubbleFormula> formula = bubble_formula(request);
      if (!formula || !formula->holds()) continue;
      const PipelineReplay replayed = replay(make_schedule(request), costs);
      const std::int64_t bubble =
          formula->measure == BubbleMeasure::kSpan ? replayed.span_bubble : replayed.bubble();
      EXPECT_EQ(bubble * formula->denominator, formula->numerator)
          << name_of(name) << " P=" << request.stages << " M=" << request.microbatches
          << " f=" << costs.forward << " b=" << costs.backward_input
          << " w=" << costs.backward_weight << " L=" << costs.send;
      ++compared;
    }
    if (published(name).bubble == nullptr) {
      EXPECT_EQ(compared, 0);
    } else {
      EXPECT_GT(compared, 10) << name_of(name);
    }
  }
}

TEST(BubbleFormulaTest, SaysWhyItDoesNotHold) {
  ScheduleRequest request{.name = ScheduleName::kZeroBubbleH1,
                          .stages = 4,
                          .microbatches = 8,
                          .costs = {10, 12, 11, 1}};
  const std::optional<BubbleFormula> formula = bubble_formula(request);
  EXPECT_EQ(formula->text, "(P - 1)(f + b - w)");
  EXPECT_EQ(formula->numerator, 3 * (10 + 12 - 11));
  EXPECT_EQ(formula->broken,
            (std::vector<std::string>{"w must be at most f and b, is 11 to 10 and 12",
                                      "sends must be free, take 1"}));
  EXPECT_NE(replay(make_schedule(request), request.costs).bubble(), formula->numerator);
}

// A long w makes the zero-bubble formulas negative. The value is as published, with a condition
// that says so.
TEST(BubbleFormulaTest, KnowsThatNoBubbleIsNegative) {
  for (const ScheduleName name : {ScheduleName::kZeroBubbleH1, ScheduleName::kZeroBubbleH2,
                                  ScheduleName::kInterleavedZeroBubble, ScheduleName::kDualPipeV}) {
    const ScheduleRequest request{
        .name = name, .stages = 4, .microbatches = 8, .costs = {1, 1, 9, 0}};
    const std::optional<BubbleFormula> formula = bubble_formula(request);
    EXPECT_LT(formula->numerator, 0) << name_of(name);
    EXPECT_EQ(formula->broken.back(), "the formula gives a bubble below 0, which cannot be");
    EXPECT_GE(replay(make_schedule(request), request.costs).bubble(), 0) << name_of(name);
  }
}

TEST(BubbleFormulaTest, TakesTheLongestOfUnevenStages) {
  const ScheduleRequest request{.name = ScheduleName::kGPipe,
                                .stages = 2,
                                .microbatches = 8,
                                .stage_costs = {{1, 5, 2, 1}, {3, 4, 2, 1}}};
  const std::optional<BubbleFormula> formula = bubble_formula(request);
  EXPECT_EQ(formula->numerator, 3 + 5 + 2 + 2);
  EXPECT_EQ(formula->broken,
            (std::vector<std::string>{
                "all stages must take the same times: it is worked out with the longest"}));
}

}  // namespace
}  // namespace stepsim
