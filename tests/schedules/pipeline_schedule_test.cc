#include "schedules/pipeline/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "schedules/pipeline/orders/hanayo.h"
#include "schedules/pipeline/published/published_schedule.h"
#include "schedules/pipeline/replay/check_order.h"
#include "schedules/pipeline/replay/replay.h"
#include "schedules/pipeline/schedule_file.h"

namespace stepsim {
namespace {

PipelineSchedule empty(std::size_t ranks, std::int32_t chunks, Placement placement) {
  PipelineSchedule schedule{.microbatches = 2, .chunks = chunks, .placement = placement};
  schedule.ranks.resize(ranks);
  return schedule;
}

TEST(PipelineScheduleTest, LoopsChunksRoundTheRanks) {
  const PipelineSchedule schedule = empty(3, 2, Placement::kLoop);
  EXPECT_EQ(stage_count(schedule), 6);
  EXPECT_EQ(stage_of(schedule, 0, 0), 0);
  EXPECT_EQ(stage_of(schedule, 2, 0), 2);
  EXPECT_EQ(stage_of(schedule, 0, 1), 3);
}

TEST(PipelineScheduleTest, TurnsAtBothEndsOfAV) {
  const PipelineSchedule schedule = empty(3, 4, Placement::kV);
  EXPECT_EQ(stage_count(schedule), 12);
  // Down, up, down, up: rank 2 holds stages 2 and 3, rank 0 stages 5 and 6.
  const std::array<std::array<int, 4>, 3> stages = {{{0, 5, 6, 11}, {1, 4, 7, 10}, {2, 3, 8, 9}}};
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    for (std::int32_t chunk = 0; chunk < 4; ++chunk) {
      EXPECT_EQ(stage_of(schedule, rank, chunk),
                stages[static_cast<std::size_t>(rank)][static_cast<std::size_t>(chunk)]);
    }
  }
}

TEST(PipelineScheduleTest, HoldsEachStageTwiceWithTwoDirections) {
  const PipelineSchedule schedule = empty(4, 2, Placement::kBidirectional);
  EXPECT_EQ(stage_count(schedule), 4);
  EXPECT_EQ(stage_of(schedule, 1, 0), 1);
  EXPECT_EQ(stage_of(schedule, 1, 1), 2);
}

TEST(ScheduleNameTest, ReadsBackEveryName) {
  std::set<std::string_view> names;
  for (const ScheduleName name : all_schedules()) {
    EXPECT_EQ(schedule_named(name_of(name)), name);
    names.insert(name_of(name));
  }
  EXPECT_EQ(names.size(), all_schedules().size());
  EXPECT_EQ(schedule_named("1f1b"), ScheduleName::kOneForwardOneBackward);
  EXPECT_EQ(schedule_named("1F1B"), std::nullopt);
  EXPECT_EQ(schedule_named(""), std::nullopt);
}

// 1F1B, two ranks, two micro-batches; F 10, BW 20, send 1:
//   rank 0  F0 0-10   F1 10-20  BW0 42-62 (rank 1's ended at 41)  BW1 72-92
//   rank 1  F0 11-21  BW0 21-41  F1 41-51  BW1 51-71
TEST(ReplayTest, StartsEachOpWhenItsInputsHaveCome) {
  const PipelineSchedule schedule =
      parse_schedule("F0.0 F1.0 BW0.0 BW1.0\nF0.0 BW0.0 F1.0 BW1.0\n");
  const PipelineReplay replayed = replay(schedule, {10, 12, 8, 1});
  EXPECT_EQ(replayed.starts,
            (std::vector<std::vector<std::int64_t>>{{0, 10, 42, 72}, {11, 21, 41, 51}}));
  EXPECT_EQ(replayed.makespan, 92);
  EXPECT_EQ(replayed.ideal, 60);
  EXPECT_EQ(replayed.bubble(), 32);
  EXPECT_EQ(replayed.span_bubble, 32)
      << "rank 0 runs from 0 to 92 and works 60, rank 1 never waits";
  EXPECT_EQ(replayed.peak_in_flight, (std::vector<std::int64_t>{2, 1}));
}

// A split backward sends its gradient before the W: rank 0's B0 starts at 2, beside rank 1's W0.
TEST(ReplayTest, SendsTheGradientBeforeTheWeightGradient) {
  const PipelineSchedule schedule = parse_schedule("F0.0 B0.0 W0.0\nF0.0 B0.0 W0.0\n");
  const PipelineReplay replayed = replay(schedule, {1, 1, 1, 0});
  EXPECT_EQ(replayed.starts, (std::vector<std::vector<std::int64_t>>{{0, 3, 4}, {1, 2, 3}}));
  EXPECT_EQ(replayed.makespan, 5);
}

// Turning at rank 1 and at the end of a V costs no send: of six hops of one micro-batch on two
// ranks (down, turn, up, and the same back) four are sends.
TEST(ReplayTest, TurnsWithoutASend) {
  const PipelineSchedule schedule =
      parse_schedule("placement: v\nF0.0 F0.1 BW0.1 BW0.0\nF0.0 F0.1 BW0.1 BW0.0\n");
  EXPECT_EQ(replay(schedule, {1, 1, 1, 100}).makespan, 4 * 1 + 4 * 2 + 4 * 100);
}

// FB takes its new activation before it gives the old one up: two at once on one rank. It takes
// F + BW: 1, then 3, then 2.
TEST(ReplayTest, RunsAFusedPairAsOneOp) {
  const PipelineReplay replayed = replay(parse_schedule("F0.0 FB1.0/0.0 BW1.0\n"), {1, 1, 1, 0});
  EXPECT_EQ(replayed.starts[0], (std::vector<std::int64_t>{0, 1, 4}));
  EXPECT_EQ(replayed.makespan, 6);
  EXPECT_EQ(replayed.peak_in_flight[0], 2);
}

// Stage 1 takes twice as long as stage 0 (F 1 and 2, BW 2 and 4):
//   rank 0  F0 0-1  F1 1-2  BW0 9-11  BW1 13-15
//   rank 1  F0 1-3  F1 3-5  BW0 5-9   BW1 9-13
TEST(ReplayTest, TakesCostsOfEachStage) {
  const PipelineSchedule schedule =
      parse_schedule("F0.0 F1.0 BW0.0 BW1.0\nF0.0 F1.0 BW0.0 BW1.0\n");
  const std::vector<PipelineCosts> costs = {{1, 1, 1, 0}, {2, 2, 2, 0}};
  const PipelineReplay replayed = replay(schedule, costs);
  EXPECT_EQ(replayed.makespan, 15);
  EXPECT_EQ(replayed.ideal, 12);
  EXPECT_EQ(replayed.span_bubble, 15 - 6);
}

// Rank 0 waits for a backward that rank 1 runs after a forward that rank 0 runs after that.
TEST(ReplayTest, NamesTheCycleThatKeepsAnOrderFromRunning) {
  const PipelineSchedule schedule =
      parse_schedule("F0.0 BW0.0 F1.0 BW1.0\nF1.0 F0.0 BW0.0 BW1.0\n");
  const std::string cycle =
      "\n  rank 0 at BW0.0 (op 2 of its list) waits for the backward of micro-batch 0 on chunk 0, "
      "which is op 3 on rank 1"
      "\n  rank 1 at F1.0 (op 1 of its list) waits for the forward of micro-batch 1 on chunk 0, "
      "which is op 3 on rank 0";
  EXPECT_EQ(find_cycle(schedule), cycle);
  EXPECT_THROW(replay(schedule, PipelineCosts{}), ConfigError);
  EXPECT_EQ(
      check_order(schedule),
      (std::vector<Problem>{{"schedule", "can't run, its ranks wait for each other:" + cycle}}));
}

// Checks what the header promises about an order without a golden one. At M = P it has less bubble
// than 1F1B with the same times (F = 10 and BW = 20 per chunk: 30 (P - 1) 2 W), and at most 2 P
// micro-batches x chunks in flight.
TEST(HanayoTest, WavesBeatOneForwardOneBackward) {
  for (const std::int32_t stages : {2, 4, 8, 16}) {
    for (const std::int32_t chunks : {2, 4, 8}) {
      for (const std::int32_t microbatches : {stages, 2 * stages, 4 * stages}) {
        const PipelineReplay replayed =
            replay(hanayo(stages, microbatches, chunks), {10, 10, 10, 0});
        EXPECT_LE(replayed.bubble(), 30 * (stages - 1) * chunks)
            << stages << " " << microbatches << " " << chunks;
        for (const std::int64_t peak : replayed.peak_in_flight) {
          EXPECT_LE(peak, std::min(microbatches, 2 * stages) * chunks);
        }
      }
    }
  }
}

// Makes the order again from the paper's text, by events instead of slots, without code of
// hanayo.cc. A wave goes down the ranks and up again, a backward takes two forwards, and a free
// rank runs an op that is ready. At most one forward and one backward per chunk are ready on a
// rank.
std::vector<std::vector<std::string>> waves(int ranks, int microbatches, int waves,
                                            bool forwards_first, int& end) {
  const int stages = 2 * waves * ranks;
  const auto rank_at = [&](int stage) {
    const int along = stage % (2 * ranks);
    return along < ranks ? along : 2 * ranks - 1 - along;
  };
  const int kNotYet = 1 << 30;
  // [0]: end of F, [1]: end of BW, by stage and micro-batch.
  std::vector<std::vector<int>> ends[2];
  for (auto& kind : ends) {
    kind.assign(static_cast<std::size_t>(stages),
                std::vector<int>(static_cast<std::size_t>(microbatches), kNotYet));
  }
  const auto end_of = [&](int kind, int stage, int i) -> int& {
    return ends[kind][static_cast<std::size_t>(stage)][static_cast<std::size_t>(i)];
  };
  std::vector<std::vector<std::string>> lists(static_cast<std::size_t>(ranks));
  std::vector<int> free_at(static_cast<std::size_t>(ranks), 0);
  end = 0;
  for (int left = 2 * stages * microbatches, now = 0; left > 0; ++now) {
    for (int rank = 0; rank < ranks; ++rank) {
      if (free_at[static_cast<std::size_t>(rank)] > now) continue;
      std::tuple<int, bool, int> best(kNotYet, true, 0);
      int best_kind = -1;
      int best_stage = 0;
      for (int stage = 0; stage < stages; ++stage) {
        if (rank_at(stage) != rank) continue;
        for (const int kind : {0, 1}) {
          int i = 0;
          while (i < microbatches && end_of(kind, stage, i) != kNotYet) ++i;
          if (i == microbatches) continue;
          bool is_ready = true;
          if (kind == 0) {
            if (stage > 0) is_ready = end_of(0, stage - 1, i) <= now;
            if (stage == 0 && i >= 2 * ranks) is_ready = end_of(1, 0, i - 2 * ranks) <= now;
          } else {
            is_ready = end_of(0, stage, i) <= now &&
                       (stage + 1 == stages || end_of(1, stage + 1, i) <= now);
          }
          const std::tuple key(i / ranks, (kind == 0) != forwards_first, i);
          if (is_ready && key < best) {
            best = key;
            best_kind = kind;
            best_stage = stage;
          }
        }
      }
      if (best_kind < 0) continue;
      const int i = std::get<2>(best);
      const int chunk = best_stage / ranks;
      end_of(best_kind, best_stage, i) = free_at[static_cast<std::size_t>(rank)] =
          now + 1 + best_kind;
      end = std::max(end, now + 1 + best_kind);
      lists[static_cast<std::size_t>(rank)].push_back(
          (best_kind == 0 ? "F" : "BW") + std::to_string(i) + "." + std::to_string(chunk));
      --left;
    }
  }
  return lists;
}

TEST(HanayoTest, IsWhatThePaperSays) {
  for (const int ranks : {2, 3, 4, 8}) {
    for (const int turns : {1, 2, 3}) {
      for (const int microbatches : {1, ranks, 2 * ranks + 1, 4 * ranks}) {
        int end = 0;
        int other_end = 0;
        auto lists = waves(ranks, microbatches, turns, false, end);
        auto others = waves(ranks, microbatches, turns, true, other_end);
        if (other_end < end) lists = others;
        const PipelineSchedule schedule = hanayo(ranks, microbatches, 2 * turns);
        EXPECT_EQ(replay(schedule, {1, 1, 1, 0}).makespan, std::min(end, other_end));
        for (int rank = 0; rank < ranks; ++rank) {
          std::vector<std::string> order;
          for (const PipelineOp& op : schedule.ranks[static_cast<std::size_t>(rank)]) {
            order.push_back(to_text(op));
          }
          EXPECT_EQ(order, lists[static_cast<std::size_t>(rank)])
              << ranks << " " << turns << " " << microbatches;
        }
      }
    }
  }
}

// M = P, with a backward of two forwards. One wave: rank 0 has 6 P of work. The last micro-batch
// enters it at P - 1, reaches the turn P - 1 later, is up P later, and takes 4 P for the way back:
// 4 (P - 1) of bubble. More waves add up to P / 2 where their ops meet, to 6 P W of work. So the
// share falls, as the paper says.
TEST(HanayoTest, HasTheBubbleOfItsPaperForOneMicrobatchARank) {
  for (const std::int32_t ranks : {2, 3, 4, 8, 16}) {
    EXPECT_EQ(replay(hanayo(ranks, ranks, 2), {1, 1, 1, 0}).bubble(), 4 * (ranks - 1)) << ranks;
    for (const std::int32_t turns : {2, 4}) {
      const PipelineReplay replayed = replay(hanayo(ranks, ranks, 2 * turns), {1, 1, 1, 0});
      EXPECT_GE(replayed.bubble(), 4 * (ranks - 1)) << ranks << " " << turns;
      EXPECT_LE(replayed.bubble(), 4 * (ranks - 1) + ranks / 2) << ranks << " " << turns;
      EXPECT_EQ(replayed.ideal, 6 * ranks * turns);
    }
  }
}

}  // namespace
}  // namespace stepsim
