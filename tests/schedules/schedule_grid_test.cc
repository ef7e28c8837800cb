// Every schedule over a wide grid of sizes and costs: it is complete, within its published memory,
// and never stuck under rendezvous. Also the closed forms that replays are known to have.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedules/pipeline/published/bubble_formula.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/replay/check_order.h"
#include "schedules/pipeline/replay/replay.h"
#include "tests/support/run_schedule.h"

namespace stepsim {
namespace {

constexpr PipelineCosts kUnit{1, 1, 1, 0};
constexpr PipelineCosts kMeasured{10, 12, 8, 0};

std::string title(const ScheduleRequest& request) {
  const PipelineCosts& costs = request.costs;
  return std::string(name_of(request.name)) + " P=" + std::to_string(request.stages) +
         " M=" + std::to_string(request.microbatches) +
         " V=" + std::to_string(request.chunks.value_or(published(request.name).default_chunks())) +
         " N=" + std::to_string(request.microbatch_group.value_or(0)) +
         " K=" + std::to_string(request.memory_limit.value_or(0)) +
         " costs=" + std::to_string(costs.forward) + "," + std::to_string(costs.backward_input) +
         "," + std::to_string(costs.backward_weight) + "," + std::to_string(costs.send);
}

// Calls visit() for equally many random legal requests of each schedule, with a fixed seed.
template <typename Visit>
void for_random_requests(std::int64_t most_stages, int of_each, const Visit& visit) {
  std::mt19937 random(6);
  const auto up_to = [&random](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most));
  };
  for (const ScheduleName name : all_schedules()) {
    int made = 0;
    for (int tries = 0; made < of_each && tries < 200 * of_each; ++tries) {
      const std::int64_t p = up_to(most_stages);
      ScheduleRequest request{.name = name,
                              .stages = p,
                              .microbatches = up_to(3) == 1 ? p * up_to(3) : up_to(3 * p + 5)};
      if (name == ScheduleName::kNaive) request.microbatches = 1;
      if (published(name).default_chunks() == 2 && up_to(2) == 1) request.chunks = up_to(4);
      if (up_to(3) == 1) request.microbatch_group = p + up_to(p + 1) - 1;
      if (published(name).planning && up_to(3) == 1) request.memory_limit = up_to(4 * p);
      request.costs = {up_to(30), up_to(30), up_to(30), up_to(2) == 1 ? 0 : up_to(15)};
      if (!check(request).empty()) continue;
      visit(request);
      ++made;
    }
    EXPECT_EQ(made, of_each) << name_of(name);
  }
}

PipelineReplay replayed(const ScheduleRequest& request) {
  return replay(make_schedule(request), request.costs);
}

PipelineReplay replayed(ScheduleName name, std::int64_t p, std::int64_t m,
                        const PipelineCosts& costs, std::optional<std::int64_t> chunks = {}) {
  return replayed({.name = name, .stages = p, .microbatches = m, .chunks = chunks, .costs = costs});
}

TEST(ScheduleGridTest, IsCompleteAndInOrderAndWithinItsMemory) {
  for_random_requests(24, 25, [](const ScheduleRequest& request) {
    const PipelineSchedule schedule = make_schedule(request);
    ASSERT_EQ(check_order(schedule), std::vector<Problem>{}) << title(request);
    // Each kind of op takes the micro-batches of a chunk in order, except reversed backwards.
    const bool is_reversed =
        request.name == ScheduleName::kGPipeLifo || request.name == ScheduleName::kBreadthFirstLifo;
    for (const std::vector<PipelineOp>& order : schedule.ranks) {
      std::set<std::pair<PipelineOpKind, std::int32_t>> begun;
      std::map<std::pair<PipelineOpKind, std::int32_t>, std::int32_t> last;
      for (const PipelineOp& op : order) {
        if (op.kind == PipelineOpKind::kForwardBackward || op.kind == PipelineOpKind::kBackward) {
          continue;
        }
        const std::pair key(op.kind, op.chunk);
        if (!is_reversed && begun.contains(key)) {
          EXPECT_GT(op.microbatch, last[key]) << title(request) << " " << to_text(op);
        }
        begun.insert(key);
        last[key] = op.microbatch;
      }
    }
    const std::int64_t p = request.stages;
    const auto limit = [&]() -> std::optional<std::int64_t> {
      switch (request.name) {
        case ScheduleName::kZeroBubbleH1QuickStart:
        case ScheduleName::kZeroBubbleAuto1P:
          return request.memory_limit.value_or(p);
        case ScheduleName::kZeroBubbleAuto2P:
        case ScheduleName::kZeroBubbleVAuto:
          return request.memory_limit.value_or(2 * p);
        case ScheduleName::kZeroBubbleVHand:
          return 2 * p;
        case ScheduleName::kVHalf:
          return 2 * ((p + 2) / 2);
        case ScheduleName::kVMin:
          return 2 * ((p + 4) / 3);
        default:
          return std::nullopt;
      }
    }();
    const PipelineReplay result = replay(schedule, request.costs);
    const std::int64_t most = std::ranges::max(result.peak_in_flight);
    EXPECT_LE(most, limit.value_or(most)) << title(request);
  });
}

// Sends are shorter than any op, because the send streams are in order. A kernel's time is a
// double, so its end may come a picosecond late.
TEST(ScheduleGridTest, RunsUnderRendezvousInTheTimeOfTheReplay) {
  for_random_requests(10, 12, [](ScheduleRequest request) {
    if (request.stages * request.microbatches > 120) return;
    request.costs.send = std::min<std::int64_t>(request.costs.send, 1);
    const PipelineSchedule schedule = make_schedule(request);
    const Duration expected =
        RunnableSchedule::milliseconds(replay(schedule, request.costs).makespan);
    const Duration step = run_schedule(schedule, request.costs).step_time;
    EXPECT_GE(step, expected) << title(request);
    EXPECT_LE(step, expected + Duration(1000)) << title(request);
  });
}

TEST(ScheduleGridTest, FormulasHoldWhereTheirConditionsDo) {
  int compared = 0;
  for_random_requests(14, 40, [&](ScheduleRequest request) {
    PipelineSchedule schedule = make_schedule(request);
    for (const PipelineCosts& costs :
         {request.costs, kUnit, kMeasured, PipelineCosts{7, 7, 7, 1}, PipelineCosts{9, 9, 4, 0}}) {
      request.costs = costs;
      const std::optional<BubbleFormula> formula = bubble_formula(request);
      if (!formula || !formula->holds()) continue;
      if (published(request.name).planning) schedule = make_schedule(request);
      const PipelineReplay result = replay(schedule, costs);
      const std::int64_t bubble =
          formula->measure == BubbleMeasure::kSpan ? result.span_bubble : result.bubble();
      EXPECT_EQ(bubble * formula->denominator, formula->numerator) << title(request);
      ++compared;
    }
  });
  EXPECT_GT(compared, 700);
}

// With L: only P - r micro-batches are in flight, so each round trip of 2 (P - 1) sends holds up P.
TEST(ScheduleGridTest, OneForwardOneBackwardPaysForSendsOncePerPMicrobatches) {
  for (std::int64_t p = 2; p <= 20; ++p) {
    for (std::int64_t k = 1; k <= 4; ++k) {
      const std::int64_t send = 1;
      const PipelineCosts costs{100, 120, 80, send};
      EXPECT_EQ(replayed(ScheduleName::kOneForwardOneBackward, p, k * p, costs).bubble(),
                (p - 1) * (300 + 2 * send) + 2 * (p - 2) * send + (k - 1) * 2 * (p - 1) * send)
          << p << " " << k;
      EXPECT_EQ(replayed(ScheduleName::kEagerOneForwardOneBackward, p, k * p, costs).bubble(),
                (p - 1) * (300 + 2 * send))
          << p << " " << k;
    }
  }
}

TEST(ScheduleGridTest, InterleavedPaysForSendsOnceAndZeroBubbleH1FourTimes) {
  for (std::int64_t p = 2; p <= 16; ++p) {
    for (std::int64_t v = 2; v <= 4; ++v) {
      for (std::int64_t k = 1; k <= 3; ++k) {
        const PipelineReplay result =
            replayed(ScheduleName::kInterleaved, p, k * p, {10, 12, 8, 1}, v);
        EXPECT_EQ(result.bubble(), (p - 1) * 30 + 2 * (p * v - 1)) << p << " " << v << " " << k;
      }
    }
    EXPECT_EQ(replayed(ScheduleName::kZeroBubbleH1, p, 3 * p, {10, 12, 8, 1}).bubble(),
              (p - 1) * (14 + 4))
        << p;
  }
}

// From the first start of all ZB-H2 also takes the way of the first micro-batch down.
TEST(ScheduleGridTest, ZeroBubbleH2StartsLateByTheWayDown) {
  for (std::int64_t p = 2; p <= 20; ++p) {
    for (const PipelineCosts& costs : {kUnit, kMeasured, PipelineCosts{9, 9, 4, 0}}) {
      const PipelineReplay result = replayed(ScheduleName::kZeroBubbleH2, p, 2 * p + 1, costs);
      const std::int64_t f = costs.forward;
      EXPECT_EQ(result.bubble(),
                (p - 1) * std::max(f, f + costs.backward_input - 2 * costs.backward_weight))
          << p;
      // The same everywhere: a (P - 1) + 1 micro-batches.
      EXPECT_EQ(std::ranges::min(result.peak_in_flight), 2 * p - 1);
      EXPECT_EQ(std::ranges::max(result.peak_in_flight), 2 * p - 1);
    }
  }
}

// Cases in which "no bubble" does not hold: measured times, or too few micro-batches.
TEST(ScheduleGridTest, ZeroBubbleIsNotZeroWithMeasuredTimes) {
  const auto span = [](ScheduleName name, std::int64_t p, std::int64_t m,
                       const PipelineCosts& costs) {
    return replayed(name, p, m, costs).span_bubble;
  };
  const std::pair<std::int64_t, std::pair<std::int64_t, std::int64_t>> cases[] = {
      {4, {12, 18}}, {8, {34, 42}}, {16, {82, 90}}};
  for (const auto& [p, expected] : cases) {
    EXPECT_EQ(span(ScheduleName::kZeroBubbleAuto2P, p, 4 * p, kMeasured), expected.first) << p;
    EXPECT_EQ(span(ScheduleName::kZeroBubbleH2, p, 4 * p, kMeasured), expected.second) << p;
  }
  for (std::int64_t p = 2; p <= 16; ++p) {
    EXPECT_EQ(span(ScheduleName::kZeroBubbleAuto2P, p, 2 * p, kUnit), 0) << p;
    EXPECT_EQ(span(ScheduleName::kZeroBubbleAuto2P, p, p, kUnit), p - 1) << p;
    EXPECT_EQ(span(ScheduleName::kZeroBubbleVHand, p, 2 * p + 1, kMeasured), 8 * (p - 1)) << p;
  }
  EXPECT_EQ(span(ScheduleName::kZeroBubbleVAuto, 4, 16, kMeasured), 16);
  EXPECT_EQ(span(ScheduleName::kZeroBubbleVHand, 4, 4, kUnit), 6);
}

// With fewer micro-batches than ranks a chunk's first one is not back in time for the next chunk.
TEST(ScheduleGridTest, BreadthFirstNeedsAsManyMicrobatchesAsRanks) {
  const auto bubble = [](std::int64_t m) {
    return replayed(ScheduleName::kBreadthFirst, 8, m, kUnit, 2).bubble();
  };
  EXPECT_EQ(bubble(8), 21);
  EXPECT_EQ(bubble(4), 33);
  EXPECT_EQ(bubble(1), 42);
}

// With unequal times each further micro-batch adds to the bubble of the controllable ones.
TEST(ScheduleGridTest, ControllableMemoryGrowsWithMicrobatchesByItsSlope) {
  for (const auto& [f, b, w] : {std::array{10, 12, 8}, {12, 10, 8}, {4, 10, 3}, {10, 4, 3}}) {
    const PipelineCosts costs{f, b, w, 0};
    const auto slope = [&](ScheduleName name) {
      return (replayed(name, 6, 100, costs).bubble() - replayed(name, 6, 60, costs).bubble()) / 40;
    };
    EXPECT_EQ(slope(ScheduleName::kVMin), std::max(0, 6 * std::max(f, b) - 2 * (f + b + w)))
        << f << " " << b << " " << w;
    EXPECT_EQ(slope(ScheduleName::kVHalf), std::max({0, 2 * b - 2 * f - w, 2 * f - 2 * b - w}))
        << f << " " << b << " " << w;
  }
}

// With a fused op that takes the time of its two parts, each with its own inputs, (P/2 - 1)(f + b -
// w) remains.
TEST(ScheduleGridTest, DualPipePaysForFusing) {
  for (std::int64_t p = 4; p <= 16; p += 4) {
    const ScheduleRequest request{.name = ScheduleName::kDualPipe,
                                  .stages = p,
                                  .microbatches = 2 * p + 4,
                                  .costs = kMeasured};
    const PipelineSchedule schedule = make_schedule(request);
    const std::int64_t outer = p / 2 - 1;
    const std::int64_t fused = replay(schedule, kMeasured).bubble();
    EXPECT_LE(fused, outer * 26) << p;  // as published
    EXPECT_GE(fused, outer * 24) << p;
    if (p <= 8) {
      EXPECT_EQ(fused, outer * 24) << p;
    }
    PipelineSchedule serial = schedule;
    for (std::vector<PipelineOp>& order : serial.ranks) {
      std::vector<PipelineOp> ops;
      for (const PipelineOp& op : order) {
        if (op.kind != PipelineOpKind::kForwardBackward) {
          ops.push_back(op);
          continue;
        }
        ops.push_back({PipelineOpKind::kForward, op.microbatch, op.chunk});
        ops.push_back({PipelineOpKind::kBackward, op.backward_microbatch, op.backward_chunk});
      }
      order = std::move(ops);
    }
    EXPECT_GE(replay(serial, kMeasured).bubble(), outer * 14) << p;
    EXPECT_LT(replay(serial, kMeasured).bubble(), outer * 15) << p;
  }
}

// A fused op that takes less than its parts saves time in the middle as well.
TEST(ScheduleGridTest, AFusedTimeOfItsOwnCounts) {
  ScheduleRequest request{
      .name = ScheduleName::kDualPipe, .stages = 4, .microbatches = 20, .costs = {10, 10, 10, 0}};
  const PipelineReplay slow = replayed(request);
  request.costs.fused = 24;
  const PipelineReplay fast = replayed(request);
  // Rank 0 has m - P + 1 = 7 rounds of two and one more after them; rank 1 has 8 rounds less one.
  EXPECT_EQ(slow.ideal - fast.ideal, 15 * 6);
  EXPECT_GT(slow.makespan - fast.makespan, 15 * 6);
  const std::optional<BubbleFormula> formula = bubble_formula(request);
  EXPECT_EQ(formula->numerator, 24 + 20 - 30);
  EXPECT_FALSE(formula->holds());
  request.name = ScheduleName::kZeroBubbleH1;
  EXPECT_EQ(check(request).size(), 1U);
}

// Chimera's units of P micro-batches leave (P - 2)(B - F) between them where B is longer than F.
TEST(ScheduleGridTest, ChimeraHasItsReplayedBubble) {
  for (std::int64_t p = 4; p <= 16; p += 2) {
    for (std::int64_t k = 1; k <= 3; ++k) {
      const PipelineReplay result = replayed(ScheduleName::kChimera, p, k * p, kMeasured);
      EXPECT_EQ(result.bubble(), (p - 2) * (20 + (k - 1) * 10)) << p << " " << k;
      EXPECT_EQ(result.peak_in_flight.front(), p / 2 + 1);
      EXPECT_EQ(std::ranges::max(result.peak_in_flight), p);
    }
  }
}

}  // namespace
}  // namespace stepsim
