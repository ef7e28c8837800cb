// Layouts of a model compared by what they serve.

#include "serving/search/serve_search.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/load_experiment.h"

namespace stepsim {
namespace {

using namespace literals;

ServedLayout layout(const std::string& model, const std::string& plan) {
  return {plan, load_experiment(with_keys({.model = model, .cluster = "dgx-h100-8"},
                                          "inference=decode,context=2,batch=1,"
                                          "allow_idle_chips=true," +
                                              plan))};
}

ServeSearchOptions options() {
  ServeSearchOptions options;
  options.input = {.low = 256, .high = 256};
  options.output = {.low = 32, .high = 32};
  options.most_requests = 16;
  options.rounds = 2;
  return options;
}

TEST(ServeSearchTest, NoPointOfTheFrontIsBeaten) {
  const std::vector<ServedLayout> layouts = {layout("llama3-8b", "tp=1"),
                                             layout("llama3-8b", "tp=4")};
  const ServeSearchResult found = search_serving(layouts, options());
  ASSERT_EQ(found.points.size(), 10U);  // 1, 2, 4, 8, 16 requests
  ASSERT_FALSE(found.front.empty());
  for (const LoadPoint& point : found.points) {
    EXPECT_NEAR(point.tokens_per_s_per_user * to_seconds(point.tpot), 1, 1e-9);
    for (const std::size_t i : found.front) {
      const LoadPoint& best = found.points[i];
      EXPECT_FALSE(point.tokens_per_s_per_user > best.tokens_per_s_per_user &&
                   point.tokens_per_s_per_chip > best.tokens_per_s_per_chip);
    }
  }
  EXPECT_EQ(layouts[found.points[found.front.front()].layout].plan, "tp=1");
  EXPECT_EQ(layouts[found.points[found.front.back()].layout].plan, "tp=4");
  EXPECT_EQ(found.smallest, 0U);
}

TEST(ServeSearchTest, TheBestMeetsTheObjective) {
  const std::vector<ServedLayout> layouts = {layout("llama3-8b", "tp=1"),
                                             layout("llama3-8b", "tp=4")};
  ServeSearchOptions asked = options();
  const ServeSearchResult free = search_serving(layouts, asked);
  asked.objective.tpot = 6ms;  // a pass over 16 GB of weights takes 4.8 ms at 3.35 TB/s
  const ServeSearchResult strict = search_serving(layouts, asked);
  ASSERT_TRUE(free.best && strict.best);
  EXPECT_EQ(layouts[free.points[*free.best].layout].plan, "tp=1");
  EXPECT_LE(strict.points[*strict.best].tpot, 6ms);
  EXPECT_GE(strict.points[*strict.best].good, 0.9);
  asked.objective.tpot = 1us;
  EXPECT_EQ(search_serving(layouts, asked).best, std::nullopt);
}

TEST(ServeSearchTest, LayoutsWithoutRoomSayWhy) {
  const ServeSearchResult found = search_serving({layout("llama3-70b", "tp=1")}, options());
  EXPECT_TRUE(found.points.empty());
  ASSERT_EQ(found.unusable.size(), 1U);
  EXPECT_TRUE(found.unusable[0].why.starts_with("memory: ")) << found.unusable[0].why;
  EXPECT_EQ(found.smallest, std::nullopt);
}

// Weights of 16 GB and what a pass needs leave no room if 85 % of 85.5 GB stay free.
TEST(ServeSearchTest, HeadroomStaysFree) {
  ServeSearchOptions asked = options();
  asked.headroom = 0.5;
  EXPECT_FALSE(search_serving({layout("llama3-8b", "tp=1")}, asked).points.empty());
  asked.headroom = 0.85;
  const ServeSearchResult found = search_serving({layout("llama3-8b", "tp=1")}, asked);
  EXPECT_TRUE(found.points.empty());
  ASSERT_EQ(found.unusable.size(), 1U);
  EXPECT_TRUE(found.unusable[0].why.starts_with("memory: ")) << found.unusable[0].why;
}

TEST(ServeSearchTest, AnyNumberOfThreadsFindsTheSame) {
  const std::vector<ServedLayout> layouts = {layout("llama3-8b", "tp=1"),
                                             layout("llama3-8b", "tp=2")};
  ServeSearchOptions asked = options();
  const ServeSearchResult alone = search_serving(layouts, asked);
  asked.threads = 2;
  const ServeSearchResult both = search_serving(layouts, asked);
  ASSERT_EQ(alone.points.size(), both.points.size());
  for (std::size_t i = 0; i < alone.points.size(); ++i) {
    EXPECT_EQ(alone.points[i].tokens_per_s_per_chip, both.points[i].tokens_per_s_per_chip);
  }
  EXPECT_EQ(alone.front, both.front);
}

// 2 a chip and hour at 1,000 tokens a second: 2 / 3.6 million tokens.
TEST(ServeSearchTest, TokensCostWhatChipsCost) {
  LoadPoint point;
  point.tokens_per_s_per_chip = 1000;
  EXPECT_DOUBLE_EQ(price_of_million_tokens(point, 2), 2 / 3.6);
}

}  // namespace
}  // namespace stepsim
