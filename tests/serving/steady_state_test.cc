// Whether a load can go on, of servers whose capacity a hand can tell.

#include "serving/steady_state.h"

#include <gtest/gtest.h>

#include <string>

#include "serving/requests/request_source.h"
#include "tests/support/serving_case.h"

namespace stepsim {
namespace {

using namespace literals;

std::optional<SteadyState> served(const std::string& requests, ServiceObjective objective = {}) {
  std::vector<Problem> problems;
  const RequestSource source = read_request_source(requests, problems);
  EXPECT_TRUE(problems.empty());
  const RequestList list = make_requests({&source, 1});
  ServingOptions options;
  options.replicas.options = plain_engine();
  options.replicas.options.batching.sequences = 10;
  LinearStepTime cost({.base = 10ms});
  const ServingResult result = simulate_serving(list, options, {.replicas = cost});
  return steady_state_of(list, result, objective);
}

// Ten requests of a hundred steps of 10 ms at a time: 10 a second, whatever comes.
TEST(SteadyStateTest, RequestsThatPileUpAreSeenAtAnyCount) {
  for (const int count : {300, 1000, 4000}) {
    const auto above = served("poisson:rate=12,input=1,output=100,count=" + std::to_string(count));
    ASSERT_TRUE(above);
    EXPECT_FALSE(above->is_sustained) << count;
    EXPECT_NEAR(above->growth_per_s, 2, 1) << count;
    EXPECT_NEAR(above->per_second(above->answered), 10, 0.2) << count;
    const auto below = served("poisson:rate=8,input=1,output=100,count=" + std::to_string(count));
    ASSERT_TRUE(below);
    EXPECT_TRUE(below->is_sustained) << count;
  }
}

// The first ten end after a second. In the window, which cuts a round, 9 to 12 end a second.
TEST(SteadyStateTest, TheStartOfALoopIsLeftOut) {
  const auto loop = served("closed:concurrency=10,count=60,input=1,output=100", {.ttft = 20ms});
  ASSERT_TRUE(loop);
  EXPECT_TRUE(loop->is_sustained);
  EXPECT_GE(loop->from.since_start, 1s);
  EXPECT_EQ(loop->good_requests, loop->requests);
  EXPECT_NEAR(loop->per_second(loop->answered), 10, 2);
}

TEST(SteadyStateTest, ABurstHasNone) {
  EXPECT_FALSE(served("burst:count=50,input=1,output=100"));
  EXPECT_FALSE(served("poisson:rate=100,count=20,input=1,output=500"));
}

}  // namespace
}  // namespace stepsim
