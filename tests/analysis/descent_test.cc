// Descents, and searches with a limit of time.

#include "search/descent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/load_experiment.h"
#include "search/search.h"

namespace stepsim {
namespace {

SearchPlace place_with(const std::string& model, const std::string& cluster,
                       const std::string& within) {
  LoadedExperiment loaded =
      load_start({.model = model, .cluster = cluster, .plan = "global-batch=32,sequence=4096"});
  std::vector<Problem> problems;
  std::vector<Dimension> dimensions = read_space(within, "--within", problems);
  EXPECT_TRUE(problems.empty());
  return {.base = std::move(loaded.experiment),
          .places = std::move(loaded.topology.places),
          .space = SearchSpace(std::move(dimensions), true)};
}

const char* const kWithin =
    "tp=1,2,4,8,pp=1,2,4,8,zero=0..3,microbatch=1,2,4,recompute=none,full,schedule=1f1b,"
    "interleaved_1f1b,chunks=1,2";

// Numbers of a space of 2 x 3 x 2: 7 is 1, 0, 1.
TEST(SearchSpaceTest, NeighboursDifferInOneKeyOrTwo) {
  const SearchPlace place = place_with("llama3-8b", "dgx-h100-8", "tp=1,2,pp=1,2,4,zero=0,1");
  const auto as_set = [](const std::vector<std::uint64_t>& numbers) {
    return std::set<std::uint64_t>(numbers.begin(), numbers.end());
  };
  EXPECT_EQ(as_set(place.space.neighbours(7)), (std::set<std::uint64_t>{1, 6, 9, 11}));
  EXPECT_EQ(as_set(place.space.neighbours_by_two(7)), (std::set<std::uint64_t>{0, 3, 5, 8, 10}));
}

// It looks at a part of the space, and what it ends with is no worse than its neighbours.
TEST(DescentTest, EndsWhereNoNeighbourIsBetter) {
  const SearchPlace place = place_with("llama3-8b", "dgx-h100-8", kWithin);
  PlanBench bench(place);
  const SearchOptions options;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    Descent descent(bench, options, 1.1);
    const auto end = descent.from(seed, [] { return true; });
    ASSERT_TRUE(end);
    EXPECT_TRUE(end->is_roomy(1.1));
    EXPECT_LT(descent.seen().size(), place.space.size() / 2);
    for (const std::uint64_t number : place.space.neighbours(end->number)) {
      const auto other = descent.seen().find(number);
      if (other == descent.seen().end() || !other->second.is_roomy(1.1)) continue;
      EXPECT_GE(other->second.step, end->step) << number;
    }
    Descent again(bench, options, 1.1);
    EXPECT_EQ(again.from(seed, [] { return true; })->number, end->number);
  }
}

// Whatever the limit is, all plans are counted once, and the gap holds.
TEST(AnytimeSearchTest, CountsAllPlansAndItsGapHolds) {
  const SearchPlace place = place_with("llama3-8b", "dgx-h100-8", kWithin);
  const SearchResult whole = search_plans({place}, {.top = 3, .threads = 2});
  ASSERT_FALSE(whole.best.empty());
  const double best = to_seconds(whole.best.front().step);
  for (const double limit : {1e-6, 0.05, 0.3, 30.0}) {
    SCOPED_TRACE(limit);
    const SearchResult result =
        search_plans({place}, {.top = 3, .time_limit_s = limit, .threads = 2});
    std::uint64_t counted = result.simulated;
    for (const auto& [reason, count] : result.excluded) counted += count;
    EXPECT_EQ(counted, result.considered);
    EXPECT_EQ(result.considered, place.space.size());
    if (result.best.empty()) {
      EXPECT_EQ(outcome_of(result), SearchOutcome::kNotKnown);
      EXPECT_EQ(result.bound_gap, 1);
      continue;
    }
    EXPECT_EQ(outcome_of(result), SearchOutcome::kFound);
    const double found = to_seconds(result.best.front().step);
    EXPECT_GE(found, best);
    EXPECT_LE(found * (1 - result.bound_gap), best * (1 + 1e-9));
  }
}

// 30 s are enough for this space: the answer is that without a limit.
TEST(AnytimeSearchTest, FindsTheSameWithTimeEnough) {
  const SearchPlace place = place_with("llama3-8b", "dgx-h100-8", kWithin);
  const SearchResult whole = search_plans({place}, {.top = 3, .threads = 2});
  const SearchResult result = search_plans({place}, {.top = 3, .time_limit_s = 60, .threads = 2});
  ASSERT_EQ(result.best.size(), whole.best.size());
  for (std::size_t i = 0; i < whole.best.size(); ++i) {
    EXPECT_EQ(result.best[i].number, whole.best[i].number);
    EXPECT_EQ(result.best[i].step, whole.best[i].step);
  }
  EXPECT_EQ(result.bound_gap, 0);
}

// No plan is faster than its model FLOPs at the peak of all chips.
TEST(AnytimeSearchTest, NoPlanIsBelowTheLeastStep) {
  const SearchPlace place = place_with("llama3-8b", "dgx-h100-8", kWithin);
  const Duration least = PlanBench(place).least_step();
  EXPECT_GT(least, Duration());
  const SearchResult result = search_plans({place}, {.top = 1, .threads = 2});
  EXPECT_LT(least, result.best.front().step);
  EXPECT_NEAR(to_seconds(least) / to_seconds(result.best.front().step), result.best.front().mfu,
              1e-6);
}

// ---- headroom ----

// Peaks that may be half as large again, by a made-up interval.
std::vector<IntervalEntry> wide() {
  return {{.metric = PredictedMetric::kMemory, .low = 0.9, .high = 1.5}};
}

TEST(HeadroomTest, PlansLeaveWhatTheUpperEndOfTheirIntervalAsksFor) {
  const SearchPlace place = place_with("llama3-8b", "dgx-h100-8", kWithin);
  const double capacity = static_cast<double>(place.base.cluster.chip.memory_capacity.value());
  const SearchResult loose = search_plans({place}, {.top = 3, .threads = 2});
  const SearchResult tight = search_plans({place}, {.top = 3, .threads = 2, .intervals = wide()});
  ASSERT_EQ(tight.best.size(), 3U);
  EXPECT_GT(1.5 * static_cast<double>(loose.best.front().peak.value()), capacity)
      << "else there is nothing to see";
  for (const FoundPlan& plan : tight.best) {
    EXPECT_LE(1.5 * static_cast<double>(plan.peak.value()), capacity);
    EXPECT_EQ(plan.certainty, FitCertainty::kSure);
  }
  EXPECT_GT(tight.excluded.at("headroom"), 0U);
  const SearchResult share = search_plans(
      {place}, {.top = 3, .threads = 2, .intervals = wide(), .headroom = {.share = 0.0}});
  EXPECT_EQ(share.best.front().number, loose.best.front().number);
  EXPECT_EQ(share.best.front().certainty, FitCertainty::kLikely);
}

// Where none is sure to fit, plans that are likely to are listed, unless headroom was asked for.
TEST(HeadroomTest, LikelyPlansComeWhereNoneIsSure) {
  const SearchPlace place = place_with("llama3-8b", "dgx-h100-8", "tp=1,2,4,8,zero=0,3");
  std::vector<IntervalEntry> very_wide = wide();
  very_wide.front().high = 20;
  const SearchResult likely =
      search_plans({place}, {.top = 3, .threads = 2, .intervals = very_wide});
  EXPECT_EQ(outcome_of(likely), SearchOutcome::kLikely);
  const SearchResult loose = search_plans({place}, {.top = 3, .threads = 2});
  ASSERT_EQ(likely.best.size(), loose.best.size());
  EXPECT_EQ(likely.best.front().number, loose.best.front().number);
  EXPECT_EQ(likely.bound_gap, 0);
  const SearchResult strict = search_plans(
      {place}, {.top = 3, .threads = 2, .intervals = very_wide, .takes_likely = false});
  EXPECT_TRUE(strict.best.empty());
  EXPECT_EQ(outcome_of(strict), SearchOutcome::kNothingFits);
  EXPECT_FALSE(strict.nearest.empty());
}

TEST(HeadroomTest, SaysHowSureAPlanFits) {
  const Bytes capacity(1000);
  const auto at = [&](std::int64_t peak, double high) {
    return certainty_of(Bytes(peak), Interval{.low = 1, .high = high}, capacity);
  };
  EXPECT_EQ(at(1000, 1000), FitCertainty::kSure);
  EXPECT_EQ(at(1000, 1001), FitCertainty::kLikely);
  EXPECT_EQ(at(1001, 1100), FitCertainty::kNo);
  EXPECT_EQ(certainty_of(Bytes(1000), std::nullopt, capacity), FitCertainty::kSure);
  EXPECT_TRUE(leaves({.share = 0.1}, Bytes(900), Interval{.low = 1, .high = 9999}, capacity));
  EXPECT_FALSE(leaves({.share = 0.1}, Bytes(901), std::nullopt, capacity));
}

}  // namespace
}  // namespace stepsim
