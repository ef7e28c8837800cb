// What a page draws of the run of tests/support/hand_made_run.h, whose header says what happens
// when.

#include "pages/run/run_drawings.h"

#include <gtest/gtest.h>

#include <string>

#include "pages/run/cluster_drawing.h"
#include "pages/run/gantt.h"
#include "pages/run/kernel_roofline.h"
#include "pages/run/link_loads.h"
#include "pages/run/memory_curves.h"
#include "pages/run/rank_times.h"
#include "tests/support/hand_made_run.h"

namespace stepsim {
namespace {

// Ranks 0 and 1 compute for 2 and 1 us of 5.001 us, ranks 2 and 3 for 1 us; the rest is bubble.
HandMadeRun drawn_run() {
  HandMadeRun run = hand_made_run();
  for (const std::int64_t microseconds : {2, 1, 1, 1}) {
    Breakdown breakdown;
    breakdown.compute = Duration(microseconds * 1'000'000);
    breakdown.bubble = run.result.window - breakdown.compute;
    run.result.breakdowns.push_back(breakdown);
  }
  return run;
}

FinishedRun finished(const HandMadeRun& run) {
  return run.view().run;
}

TEST(RunDrawingsTest, TicksArePowersOfTenOfAPicosecond) {
  EXPECT_EQ(DrawnTime(Duration(2'000'000)).tick_s(), 1e-12);
  const DrawnTime time(Duration(5'001'000));  // a tick a picosecond would be five million
  EXPECT_EQ(time.tick_s(), 1e-11);
  EXPECT_EQ(time.ticks(Duration(5'001'000)), 500'100);
}

TEST(RunDrawingsTest, ARankOfEachStageIsDrawn) {
  const HandMadeRun run = drawn_run();
  EXPECT_EQ(drawn_ranks(finished(run), 8), (std::vector<std::size_t>{0, 2}));
}

TEST(RunDrawingsTest, AStageHasTheMeanOfItsRanks) {
  const HandMadeRun run = drawn_run();
  const Json stages = stage_times(finished(run));
  EXPECT_EQ(json_text(stages["names"]), R"(["stage 0","stage 1"])");
  ASSERT_EQ(stages["parts"].size(), 2u);  // what no rank has is left out
  EXPECT_EQ(stages["parts"][0]["name"], "compute");
  EXPECT_EQ(stages["parts"][0]["values"][0].get<double>(), 1.5e-6);
  EXPECT_EQ(stages["parts"][0]["values"][1].get<double>(), 1e-6);
  EXPECT_EQ(stages["parts"][1]["name"], "bubble");
}

TEST(RunDrawingsTest, ARankHasItsOwnCell) {
  const HandMadeRun run = drawn_run();
  const Json ranks = rank_times(finished(run));
  EXPECT_EQ(ranks["columns"].get<int>(), 2);
  EXPECT_EQ(ranks["together"].get<int>(), 1);
  EXPECT_EQ(json_text(ranks["first"]), "[[0,1],[2,3]]");
  EXPECT_EQ(json_text(ranks["parts"][0]["values"]), "[[2e-06,1e-06],[1e-06,1e-06]]");
}

TEST(RunDrawingsTest, TheGanttChartHasPassesAndGapsWithTheirReasons) {
  const HandMadeRun run = drawn_run();
  const Json chart = gantt(finished(run));
  ASSERT_EQ(chart["ranks"].size(), 2u);
  const Json& first = chart["ranks"][0];
  EXPECT_EQ(first["name"], "stage 0 (rank 0)");
  // Its one forward ends at 1,500,700 ps; a tick is 10 ps.
  ASSERT_EQ(first["passes"].size(), 1u);
  EXPECT_EQ(first["passes"][0][0].get<int>(), 0);
  EXPECT_EQ(first["passes"][0][1].get<int>(), 150'070);
  EXPECT_EQ(chart["phases"][first["passes"][0][3].get<std::size_t>()], "forward");
  ASSERT_EQ(first["gaps"].size(), 4u);
  const auto text = [&](std::size_t gap) {
    return chart["texts"][first["gaps"][gap][2].get<std::size_t>()].get<std::string>();
  };
  const auto part = [&](std::size_t gap) {
    return chart["parts"][first["gaps"][gap][3].get<std::size_t>()].get<std::string>();
  };
  EXPECT_EQ(text(0), "waits for all-reduce (tp) with rank 1");
  EXPECT_EQ(part(0), "idle");
  EXPECT_EQ(part(1), "exposed tp");
  EXPECT_EQ(text(3), "nothing left to run");
  EXPECT_EQ(part(3), "bubble");
  EXPECT_EQ(json_text(first["communication"]),
            R"([{"axis":"pp","spans":[[300000,50040]]},{"axis":"tp","spans":[[200099,99901]]}])");
}

TEST(RunDrawingsTest, MemoryBeginsWithTheRankThatNeedsMost) {
  const HandMadeRun run = drawn_run();
  const Json curves = memory_curves(finished(run));
  EXPECT_EQ(curves["unit_bytes"].get<int>(), 1'000);  // a chip has 10^9 bytes
  EXPECT_EQ(curves["capacity"].get<int>(), 1'000'000);
  EXPECT_EQ(json_text(curves["categories"]), R"(["parameters","activations"])");
  EXPECT_EQ(curves["ranks"][0]["name"], "stage 1 (rank 2)");
  EXPECT_EQ(curves["ranks"][0]["peak_at"].get<int>(), 350'040);
  // At 3,500,400 ps layer 8 of micro-batch 3 begins.
  EXPECT_EQ(json_text(curves["ranks"][0]["alive"]), R"([{"microbatch":3,"layers":"8","count":1}])");
  EXPECT_EQ(json_text(curves["ranks"][1]["at"]), "[0,150070,350040]");
}

TEST(RunDrawingsTest, AKindOfLinkHasTheMeanOfItsRecordedLinks) {
  const HandMadeRun run = drawn_run();
  const Json loads = link_loads(finished(run));
  // Links 0 and 6 lead to the switch: 1,501 and 2,500 bytes of 2 x 1 GB/s x 5.001 us. Link 7 leads
  // back and carried nothing.
  ASSERT_EQ(loads["kinds"].size(), 1u);
  const Json& kind = loads["kinds"][0];
  EXPECT_EQ(kind["links"].get<int>(), 2);
  EXPECT_NEAR(kind["mean"].get<double>(), 4001 / (2e9 * 5.001e-6), 1e-5);
  EXPECT_EQ(kind["busiest"].get<double>(), 0.5);
  // Six bins, of which the last lasts 1 ns: what is drawn carries as much in all.
  double bytes = 0;
  const double bins = static_cast<double>(kind["over_time"].size());
  for (const Json& hundredths : kind["over_time"]) {
    bytes += hundredths.get<double>() / 1e4 * 2e9 * 5.001e-6 / bins;
  }
  EXPECT_NEAR(bytes, 4001, 5);
}

TEST(RunDrawingsTest, ANodeHasTheLoadOfItsBusiestLink) {
  const HandMadeRun run = drawn_run();
  const Json drawing = cluster_drawing(finished(run));
  ASSERT_EQ(drawing["rows"].size(), 2u);
  EXPECT_EQ(drawing["rows"][0]["kind"], "node*.nvswitch");
  EXPECT_EQ(drawing["rows"][0]["cells"][0][3].get<double>(), 0.5);
  const Json& chips = drawing["rows"][1];
  EXPECT_TRUE(chips["chips"].get<bool>());
  EXPECT_EQ(chips["cells"].size(), 4u);
  EXPECT_EQ(chips["cells"][0][3].get<double>(), 0.5);  // links 0 and 1: 0.5 and 0.4
  EXPECT_EQ(chips["cells"][1][3].get<double>(), 0);
  EXPECT_EQ(chips["cells"][3][3].get<double>(), 0.5);
  EXPECT_EQ(drawing["joins"].size(), 4u);
}

TEST(RunDrawingsTest, TheChipOfAStragglerIsMarked) {
  HandMadeRun run = drawn_run();
  run.graph.ranks[2].slowdown = 1.5;
  const Json drawing = cluster_drawing(finished(run));
  ASSERT_EQ(drawing["slow"].size(), 1u);
  const Json& sign = drawing["slow"][0];
  EXPECT_EQ(drawing["rows"][sign[0].get<std::size_t>()]["kind"], drawing["rows"][1]["kind"]);
  EXPECT_EQ(sign[2].get<int>(), 2);
  EXPECT_EQ(sign[3].get<double>(), 1.5);
  const Json ranks = rank_times(finished(run));
  ASSERT_EQ(ranks["slow"].size(), 1u);
  EXPECT_EQ(ranks["slow"][0][0].get<int>(), 1);  // of stage 1
  EXPECT_EQ(ranks["slow"][0][2].get<int>(), 2);
  EXPECT_TRUE(drawing["faults"].empty());
}

TEST(RunDrawingsTest, KernelsAlikeAreOnePoint) {
  const HandMadeRun run = drawn_run();
  const Json roofline = kernel_roofline(finished(run));
  ASSERT_EQ(roofline["kernels"].size(), 1u);
  const Json& kernel = roofline["kernels"][0];
  EXPECT_EQ(kernel["flops"].get<double>(), 300);
  EXPECT_EQ(kernel["bytes"].get<double>(), 30);
  // Two kernels a work; half of the ranks run it once, half three times.
  EXPECT_EQ(kernel["count"].get<double>(), 4);
  EXPECT_EQ(kernel["share"].get<double>(), 1);
  EXPECT_EQ(kernel["bound"], "vector units");  // 300 / 5e10 s against 30 / 1e12 s
  EXPECT_EQ(json_text(roofline["peaks"]), R"([{"type":"bf16","flops_per_s":50000000000.0}])");
}

}  // namespace
}  // namespace stepsim
