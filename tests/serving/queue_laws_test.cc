// One server, one request at a time: what queueing theory says of a million requests.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "serving/requests/random_use.h"
#include "serving/requests/request_source.h"
#include "sim/base/exact_math.h"
#include "tests/support/serving_case.h"

namespace stepsim {
namespace {

using namespace literals;

constexpr std::size_t kRequests = 1'000'000;
constexpr std::size_t kBatches = 100;
constexpr Duration kService = 10ms;
constexpr Duration kToken = 100ns;
constexpr double kMeanTokens = 100'000;  // x 100 ns = 10 ms

RequestList poisson_requests(const char* text) {
  std::vector<Problem> problems;
  const RequestSource source = read_request_source(text, problems);
  EXPECT_TRUE(problems.empty());
  return make_requests({&source, 1});
}

EngineOptions one_at_a_time() {
  EngineOptions engine = plain_engine();
  engine.batching.sequences = 1;
  engine.batching.budget = kMostRequestTokens;
  return engine;
}

// Lindley (1952): W' = max(0, W + S - A), in whole picoseconds.
void expect_lindley(const RequestList& list, const ServingResult& result,
                    const std::function<Duration(const Request&)>& service) {
  Time free_at;
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < list.requests.size(); ++i) {
    const Request& request = list.requests[i];
    const Time start = std::max(request.arrival, free_at);
    free_at = start + service(request);
    const RequestRecord& record = result.requests[RequestId(i)];
    const Duration waited = record.parts[static_cast<std::size_t>(RequestPart::kQueue)];
    if (record.last_token != free_at || waited != start - request.arrival) ++wrong;
  }
  EXPECT_EQ(wrong, 0U);
}

// Expects the mean wait within three standard errors, which means of batches give: waits of
// neighbours are alike, those of batches of 10,000 are not.
void expect_mean_wait(const ServingResult& result, double expected_s) {
  double sum = 0;
  double squares = 0;
  for (std::size_t batch = 0; batch < kBatches; ++batch) {
    double waits = 0;
    for (std::size_t i = 0; i < kRequests / kBatches; ++i) {
      const auto id = static_cast<std::uint32_t>(batch * (kRequests / kBatches) + i);
      waits += to_seconds(
          result.requests[RequestId(id)].parts[static_cast<std::size_t>(RequestPart::kQueue)]);
    }
    const double mean = waits / (kRequests / kBatches);
    sum += mean;
    squares += mean * mean;
  }
  const double mean = sum / kBatches;
  const double error = std::sqrt((squares / kBatches - mean * mean) / (kBatches - 1));
  EXPECT_LT(error, 0.01 * expected_s);
  EXPECT_NEAR(mean, expected_s, 3 * error);
}

// M/D/1 at half load: rho S / (2 (1 - rho)) = 5 ms (Pollaczek and Khinchine).
TEST(QueueLawsTest, FixedServiceWaitsAsLindleyAndPollaczekSay) {
  const RequestList list =
      poisson_requests("poisson:rate=50,count=1000000,input=1,output=1,seed=1");
  const ServingResult result = serve(list, one_at_a_time(), {.base = kService});
  expect_lindley(list, result, [](const Request&) { return kService; });
  expect_mean_wait(result, 5e-3);
  EXPECT_EQ(result.steps, static_cast<std::int64_t>(kRequests));
}

// M/M/1 at half load: rho S / (1 - rho) = 10 ms. A service is exponential to a token of 100 ns.
TEST(QueueLawsTest, ExponentialServiceWaitsAsLindleyAndPollaczekSay) {
  RequestList list = poisson_requests("poisson:rate=50,count=1000000,input=1,output=1,seed=2");
  const RandomStream lengths(2, RandomUse::kInputLength);
  for (std::size_t i = 0; i < kRequests; ++i) {
    const double drawn = static_cast<double>(negative_log(lengths.at(i))) * 0x1p-56;
    list.requests[i].input_tokens = static_cast<std::int32_t>(std::ceil(kMeanTokens * drawn));
  }
  const ServingResult result = serve(list, one_at_a_time(), {.token = kToken});
  expect_lindley(list, result,
                 [](const Request& request) { return request.input_tokens * kToken; });
  expect_mean_wait(result, 10e-3);
}

}  // namespace
}  // namespace stepsim
