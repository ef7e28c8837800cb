#include "traces/results/published_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/hand_made_run.h"

namespace stepsim {
namespace {

PublishedFigure figure(PublishedMetric metric, double value) {
  PublishedFigure figure;
  figure.metric = metric;
  figure.value = value;
  figure.source = "paper, table 1";
  return figure;
}

// The hand-made run (hand_made_run.h) takes 5.001 us, has an MFU of 0.40696 with half of
// attention's pairs and needs 750 MB; see report_test.cc.
std::vector<PublishedComparison> comparisons() {
  const HandMadeRun run = hand_made_run();
  PublishedFigure time = figure(PublishedMetric::kStepTime, 5e-6);
  time.plan = "TP 4";
  PublishedFigure utilization = figure(PublishedMetric::kModelFlopsUtilization, 0.5);
  PublishedFigure memory = figure(PublishedMetric::kPeakMemory, 6e8);
  memory.high = 1.3;
  memory.why = "the cache counts";
  const Publication publication{.figures = {time, utilization, memory}, .none = {}};
  return compare_with_published(publication, run.experiment, run.result, run.metrics);
}

TEST(PublishedReportTest, ComparesInTheUnitsOfTheFigure) {
  const std::vector<PublishedComparison> all = comparisons();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_DOUBLE_EQ(all[0].simulated, 5.001e-6);
  EXPECT_TRUE(all[0].as_expected());
  EXPECT_NEAR(all[1].simulated, 0.40696, 1e-5);
  EXPECT_FALSE(all[1].as_expected());  // 0.81 of it
  EXPECT_DOUBLE_EQ(all[2].simulated, 7.5e8);
  EXPECT_TRUE(all[2].as_expected());  // 1.25, up to 1.3
}

TEST(PublishedReportTest, SaysWhoMeasuredWithWhatAndWhyItDiffers) {
  ReportText text(false);
  add_published(text, comparisons());
  EXPECT_EQ(text.text(),
            R"(  step time                    5.00 us  simulated        5.00 us     +0.0 %
    paper, table 1; measured with TP 4
  MFU                           50.0 %  simulated         40.7 %    -18.6 %
    paper, table 1; expected -10 to +10 %
  peak memory                   600 MB  simulated         750 MB    +25.0 %
    paper, table 1
    the cache counts
)");
}

TEST(PublishedReportTest, JsonHasTheSame) {
  const auto json = nlohmann::json::parse(published_json(comparisons()));
  ASSERT_EQ(json.size(), 3U);
  EXPECT_EQ(json[0]["metric"], "step_time");
  EXPECT_EQ(json[0]["published"], 5e-6);
  EXPECT_EQ(json[0]["plan"], "TP 4");
  EXPECT_FALSE(json[0].contains("attention_flops"));
  EXPECT_EQ(json[1]["attention_flops"], "causal");
  EXPECT_EQ(json[1]["as_expected"], false);
  EXPECT_EQ(json[2]["why"], "the cache counts");
  EXPECT_NEAR(json[2]["ratio"].get<double>(), 1.25, 1e-12);
  EXPECT_EQ(published_json({}), "[]");
}

}  // namespace
}  // namespace stepsim
