#include <gtest/gtest.h>

#include "experiment/uncertainty.h"
#include "proto/catalog/measured_tables.h"

namespace stepsim {
namespace {

std::vector<Situation> all_situations() {
  std::vector<Situation> all;
  for (unsigned bits = 0; bits < 16; ++bits) {
    all.push_back({.own_kernels = (bits & 1U) != 0,
                   .experts = (bits & 2U) != 0,
                   .across_nodes = (bits & 4U) != 0,
                   .narrow = (bits & 8U) != 0});
  }
  return all;
}

TEST(IntervalsTest, TheFirstEntryThatAgreesHolds) {
  const std::vector<IntervalEntry> entries = {
      {.metric = PredictedMetric::kStepTime, .experts = true, .low = 0.5, .high = 2},
      {.metric = PredictedMetric::kMemory, .low = 0.9, .high = 1.1},
      {.metric = PredictedMetric::kStepTime, .low = 0.8, .high = 1.25}};
  const auto of = [&](const Situation& situation, PredictedMetric metric) {
    return interval_of(entries, metric, situation, 10);
  };
  EXPECT_DOUBLE_EQ(of({.experts = true}, PredictedMetric::kStepTime)->high, 20);
  EXPECT_DOUBLE_EQ(of({.experts = false}, PredictedMetric::kStepTime)->high, 12.5);
  EXPECT_DOUBLE_EQ(of({.experts = true}, PredictedMetric::kMemory)->low, 9);
  EXPECT_FALSE(interval_of({}, PredictedMetric::kMemory, {}, 10));
}

TEST(IntervalsTest, TheCatalogHasOneForEverySituation) {
  const std::vector<IntervalEntry> entries = load_intervals();
  for (const Situation& situation : all_situations()) {
    for (const PredictedMetric metric : {PredictedMetric::kStepTime, PredictedMetric::kMemory}) {
      const auto interval = interval_of(entries, metric, situation, 1);
      ASSERT_TRUE(interval) << text_of(situation);
      EXPECT_GT(interval->low, 0.3) << text_of(situation);
      EXPECT_LT(interval->low, interval->high) << text_of(situation);
      ASSERT_TRUE(interval->median) << text_of(situation);
      EXPECT_LE(interval->low, *interval->median) << text_of(situation);
      EXPECT_LE(*interval->median, interval->high) << text_of(situation);
      EXPECT_LT(interval->high, 5) << text_of(situation);
    }
  }
}

// The middle half of 8 to 16 is 10 to 14.
TEST(IntervalsTest, AMedianIsSaidWhereThePredictionLiesAside) {
  const Interval interval{.low = 8, .high = 16, .median = 12};
  EXPECT_FALSE(telling_median(interval, 10));
  EXPECT_FALSE(telling_median(interval, 14));
  EXPECT_DOUBLE_EQ(telling_median(interval, 9).value(), 12.0 / 9);
  EXPECT_DOUBLE_EQ(telling_median(interval, 15).value(), 12.0 / 15);
  EXPECT_FALSE(telling_median({.low = 8, .high = 16}, 9)) << "nobody measured it";
}

TEST(IntervalsTest, SituationsSayWhatTheyAre) {
  EXPECT_EQ(text_of({}), "own kernels, dense, in a node, 16 bits");
  EXPECT_EQ(text_of({.own_kernels = false, .experts = true, .across_nodes = true, .narrow = true}),
            "kernels of a sister, experts, across nodes, narrow");
}

}  // namespace
}  // namespace stepsim
