#include "schedules/pipeline/schedule_file.h"

#include <gtest/gtest.h>

#include <string>

#include "schedules/pipeline/orders/dual_pipe.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/published/published_schedule.h"
#include "schedules/pipeline/replay/check_order.h"
#include "schedules/pipeline/torch_order.h"

namespace stepsim {
namespace {

std::string problems_of(std::string_view text) {
  std::vector<Problem> problems;
  try {
    problems = check_order(parse_schedule(text));
  } catch (const ConfigError& error) {
    problems = error.problems();
  }
  std::string list;
  for (const Problem& problem : problems) list += problem.field + ": " + problem.message + "\n";
  return list;
}

TEST(ScheduleFileTest, ReadsOpsPlacementAndComments) {
  const PipelineSchedule schedule = parse_schedule(
      "# GPipe of two\r\n"
      "placement: v   # two chunks\n"
      "\n"
      "F0.0 F1.0\tF0.1 B0.1 BW0.0 W0.1  # rank 0\n"
      "  F12.0 FB5.0/2.1");
  EXPECT_EQ(schedule.placement, Placement::kV);
  EXPECT_EQ(schedule.microbatches, 13);
  EXPECT_EQ(schedule.chunks, 2);
  ASSERT_EQ(schedule.size(), 2);
  ASSERT_EQ(schedule.ranks[0].size(), 6U);
  EXPECT_EQ(schedule.ranks[0][3], (PipelineOp{PipelineOpKind::kBackwardInput, 0, 1}));
  EXPECT_EQ(schedule.ranks[0][4], (PipelineOp{PipelineOpKind::kBackward, 0, 0}));
  EXPECT_EQ(schedule.ranks[1][1], (PipelineOp{PipelineOpKind::kForwardBackward, 5, 0, 2, 1}));
}

TEST(ScheduleFileTest, ReadsBackWhatItWrites) {
  const PipelineSchedule schedule = dualpipe(4, 10);
  std::string text = "placement: bidirectional\n";
  for (const auto& order : schedule.ranks) {
    for (const PipelineOp& op : order) text += to_text(op) + " ";
    text += "\n";
  }
  EXPECT_EQ(parse_schedule(text).ranks, schedule.ranks);
  EXPECT_EQ(problems_of(text), "");
}

TEST(ScheduleFileTest, AScheduleIsWrittenAsItsFile) {
  const std::string text = "placement: v\nF0.0 F0.1 BW0.1 BW0.0\nF0.0 F0.1 B0.1 W0.1 BW0.0\n";
  EXPECT_EQ(write_schedule(parse_schedule(text)), text);
  EXPECT_EQ(write_schedule(parse_schedule("F0.0 BW0.0")), "F0.0 BW0.0\n") << "loop goes unsaid";
}

TEST(ScheduleFileTest, NamesEveryWordThatIsNoOp) {
  const std::string rule =
      "must be like F3.0, B3.0, W3.0, BW3.0 or FB5.0/2.1 (micro-batch.chunk; micro-batch below "
      "1048576, chunk below 1024)\n";
  EXPECT_EQ(problems_of("F0.0 f1.0\nplacement: ring\nF0 FB0.0 BW0.0x F-1.0 F99999999999.0 F0.\n"),
            "line 1: \"f1.0\" is no op: " + rule +
                "line 2: placement must be loop, v or bidirectional, is \"ring\"\n" +
                "line 3: \"F0\" is no op: " + rule + "line 3: \"FB0.0\" is no op: " + rule +
                "line 3: \"BW0.0x\" is no op: " + rule + "line 3: \"F-1.0\" is no op: " + rule +
                "line 3: \"F99999999999.0\" is no op: " + rule +
                "line 3: \"F0.\" is no op: " + rule);
  EXPECT_EQ(problems_of("# nothing\n"),
            "schedule: has no ops: a line a rank is needed, like \"F0.0 BW0.0\"\n");
}

TEST(ScheduleFileTest, NamesMissingDoubledUnknownAndMisplacedOps) {
  EXPECT_EQ(problems_of("F0.0 F1.0 BW0.0\nF0.0 F0.0 BW0.0 F1.0 BW1.0 BW1.0\n"),
            "rank 0: misses BW1.0\n"
            "rank 1: has more than once F0.0, BW1.0\n");
  EXPECT_EQ(problems_of("F0.0 W0.0 B0.0\nBW0.0 F0.0\n"),
            "rank 0: has in illegal order W0.0 before its B\n"
            "rank 1: has in illegal order BW0.0 before its F\n");
  EXPECT_EQ(problems_of("F0.0 B0.0\nF0.0 W0.0\n"),
            "rank 0: misses W0.0\n"
            "rank 1: misses B0.0\n"
            "rank 1: has in illegal order W0.0 before its B\n");
  // BW is B and W in one: a W beside it is one too many.
  EXPECT_EQ(problems_of("F0.0 BW0.0 W0.0\n"), "rank 0: has more than once W0.0\n");
  // A fused op needs two micro-batches: its backward can't be that of its own forward.
  EXPECT_EQ(problems_of("FB0.0/0.0\n"), "rank 0: has in illegal order FB0.0/0.0 before its F\n");
  // Micro-batches 0 and 1 come from rank 0 on chunk 0, 2 and 3 from rank 1 on chunk 1.
  EXPECT_EQ(problems_of("placement: bidirectional\n"
                        "F0.0 BW0.0 F1.0 BW1.0 F2.1 BW2.1 F3.0 BW3.1\n"
                        "F0.0 BW0.0 F1.0 BW1.0 F2.1 BW2.1 F3.1 BW3.1\n"),
            "rank 0: misses F3.1\n"
            "rank 0: has ops that it can't have: F3.0\n"
            "rank 0: has in illegal order BW3.1 before its F\n");
  EXPECT_EQ(
      problems_of("placement: bidirectional\nF0.0 BW0.0\n"),
      "placement: bidirectional needs 2 chunks and an even number of micro-batches, has 1 and "
      "1\n");
}

TEST(ScheduleFileTest, KeepsLongListsShort) {
  EXPECT_EQ(problems_of("F10.0 BW10.0\n"),
            "rank 0: misses F0.0, BW0.0, F1.0, BW1.0, F2.0, BW2.0, F3.0, BW3.0 and 12 more\n");
}

// Every published schedule of one direction comes back from PyTorch's CSV as it was.
TEST(TorchOrderTest, PublishedSchedulesComeBack) {
  int schedules = 0;
  for (const ScheduleName name : all_schedules()) {
    ScheduleRequest request{.name = name, .stages = 4, .microbatches = 8};
    if (!check(request).empty()) continue;
    const PipelineSchedule schedule = make_schedule(request);
    if (schedule.placement == Placement::kBidirectional) {
      EXPECT_THROW(write_torch_order(schedule), ConfigError);
      continue;
    }
    ++schedules;
    const PipelineSchedule read = parse_schedule(write_torch_order(schedule));
    EXPECT_EQ(read.ranks, schedule.ranks) << name_of(name);
    EXPECT_EQ(read.placement, schedule.placement) << name_of(name);
    EXPECT_EQ(read.microbatches, schedule.microbatches);
    EXPECT_EQ(read.chunks, schedule.chunks);
  }
  EXPECT_GE(schedules, 15);
}

TEST(TorchOrderTest, CellsAreStageOpAndMicrobatch) {
  const PipelineSchedule v = parse_schedule("0F0,,3F0,3B0,0I0,0W0\r\n1F0,2F0, 2B0 ,1B0\n");
  EXPECT_EQ(v.placement, Placement::kV);
  EXPECT_EQ(v.ranks[0][1], (PipelineOp{PipelineOpKind::kForward, 0, 1}));
  EXPECT_EQ(v.ranks[0][3], (PipelineOp{PipelineOpKind::kBackwardInput, 0, 0}));
  EXPECT_EQ(v.ranks[1][2], (PipelineOp{PipelineOpKind::kBackward, 0, 1}));
  const PipelineSchedule fused = parse_schedule("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
  EXPECT_EQ(fused.ranks[0][1], (PipelineOp{PipelineOpKind::kForwardBackward, 1, 0, 0, 0}));
  EXPECT_EQ(write_torch_order(fused), "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
  for (const char* const text : {"0F0,0UNSHARD", "0F", "0F0,1F0\n0F1,1F1\n", "0F99999999999",
                                 "(0B0;0F0)OVERLAP_F_B", "0F0,(0F1", "7F0\n0F0\n"}) {
    EXPECT_THROW(parse_schedule(text), ConfigError) << text;
  }
}

}  // namespace
}  // namespace stepsim
