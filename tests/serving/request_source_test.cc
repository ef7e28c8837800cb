#include "serving/requests/request_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "serving/requests/random_use.h"
#include "sim/base/exact_math.h"
#include "tests/support/reference_folder.h"
#include "tests/support/temporary_folder.h"

namespace stepsim {
namespace {

using namespace literals;

RequestList made(const std::vector<std::string>& texts) {
  std::vector<Problem> problems;
  std::vector<RequestSource> sources;
  for (const std::string& text : texts) sources.push_back(read_request_source(text, problems));
  throw_if_any(problems);
  return make_requests(sources);
}

std::vector<Problem> problems_of(const std::string& text) {
  try {
    made({text});
  } catch (const ConfigError& error) {
    return error.problems();
  }
  return {};
}

std::string written(const std::string& name, const std::string& text) {
  const std::string path = (temporary_folder() / name).string();
  std::ofstream(path) << text;
  return path;
}

// Mean and variance of the gaps between requests, in units of the mean gap.
struct GapMoments {
  double mean = 0;
  double variance = 0;
};
GapMoments moments_of(const RequestList& list, double rate) {
  GapMoments moments;
  double squares = 0;
  for (std::size_t i = 1; i < list.requests.size(); ++i) {
    const double gap = rate * to_seconds(list.requests[i].arrival - list.requests[i - 1].arrival);
    moments.mean += gap;
    squares += gap * gap;
  }
  const auto count = static_cast<double>(list.requests.size() - 1);
  moments.mean /= count;
  moments.variance = squares / count - moments.mean * moments.mean;
  return moments;
}

TEST(ExactMathTest, LogarithmsAndExponentialsAreThoseOfMathematics) {
  for (const std::uint64_t u : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{12345},
                                std::uint64_t{1} << 62, UINT64_MAX / 3, UINT64_MAX - 1}) {
    const long double exact = -std::log((static_cast<long double>(u) + 1) / 0x1p64L);
    EXPECT_NEAR(static_cast<double>(negative_log(u)) * 0x1p-56, static_cast<double>(exact), 4e-15);
  }
  EXPECT_EQ(negative_log(UINT64_MAX), 0U);
  for (const double x : {1e-9, 0.3, 1.0, 2.0, 12345.678}) {
    EXPECT_NEAR(exact_log(x), std::log(x), 4e-15);
    EXPECT_NEAR(exact_exp(exact_log(x)) / x, 1, 4e-15);
  }
}

TEST(RequestSourceTest, PoissonRequestsComeAtTheirRate) {
  const RequestList list = made({"poisson:rate=4,count=100000,input=7,output=uniform:103-128"});
  ASSERT_EQ(list.requests.size(), 100'000U);
  const GapMoments moments = moments_of(list, 4);
  // Three standard errors of a mean of 100,000 exponential numbers, and of their variance.
  EXPECT_NEAR(moments.mean, 1, 3 / std::sqrt(1e5));
  EXPECT_NEAR(moments.variance, 1, 3 * std::sqrt(8 / 1e5));
  std::map<std::int32_t, int> outputs;
  for (const Request& request : list.requests) {
    EXPECT_EQ(request.input_tokens, 7);
    ++outputs[request.output_tokens];
  }
  ASSERT_EQ(outputs.size(), 26U);
  EXPECT_EQ(outputs.begin()->first, 103);
  EXPECT_EQ(outputs.rbegin()->first, 128);
  for (const auto& [length, count] : outputs) EXPECT_NEAR(count, 1e5 / 26, 4 * std::sqrt(1e5 / 26));
}

TEST(RequestSourceTest, BurstinessIsTheShapeOfTheGaps) {
  for (const char* const shape : {"0.5", "1", "4"}) {
    const RequestList list =
        made({std::string("gamma:rate=10,count=50000,input=1,output=1,") + "burstiness=" + shape});
    const GapMoments moments = moments_of(list, 10);
    const double variance = 1 / std::stod(shape);
    EXPECT_NEAR(moments.mean, 1, 3 * std::sqrt(variance / 5e4)) << shape;
    EXPECT_NEAR(moments.variance, variance, 0.06 * variance) << shape;
  }
}

TEST(RequestSourceTest, LognormalLengthsHaveTheirMedianAndLimit) {
  const RequestList list = made({"burst:count=40001,input=lognormal:1000:0.8:8192,output=1"});
  std::vector<std::int32_t> lengths;
  for (const Request& request : list.requests) lengths.push_back(request.input_tokens);
  std::sort(lengths.begin(), lengths.end());
  EXPECT_LE(lengths.back(), 8192);
  EXPECT_NEAR(lengths[20'000], 1000, 20);
  // A standard deviation above the median is e^0.8 of it: quantile 0.8413.
  EXPECT_NEAR(lengths[33'654], 1000 * std::exp(0.8), 50);
}

TEST(RequestSourceTest, BurstsComeTogether) {
  const RequestList list = made({"burst:count=5,size=2,every=1s,input=1,output=1"});
  const std::vector<Duration> expected = {0s, 0s, 1s, 1s, 2s};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(list.requests[i].arrival.since_start, expected[i]);
  }
}

TEST(RequestSourceTest, RandomNumbersDependOnTheSeedAlone) {
  const char* const text = "poisson:rate=4,count=100,input=uniform:1-1000,output=5,seed=";
  const RequestList one = made({text + std::string("1")});
  const RequestList again = made({text + std::string("1")});
  const RequestList other = made({text + std::string("2")});
  EXPECT_EQ(one.requests[99].arrival, again.requests[99].arrival);
  EXPECT_EQ(one.requests[99].input_tokens, again.requests[99].input_tokens);
  EXPECT_NE(one.requests[99].arrival, other.requests[99].arrival);
  // The same on every machine: computed with integers, in Python too, from the formulas of
  // random.h.
  EXPECT_EQ(one.requests[0].arrival.since_start,
            exponential(250ms, RandomStream(1, RandomUse::kArrival).at(0)));
}

TEST(RequestSourceTest, AFileSaysItAll) {
  const std::string path = written("requests.csv",
                                   "who,arrival_s,input_tokens,output_tokens,prefix,prefix_tokens\n"
                                   "a,0.5,10,20,x,4\nb,0.25,1,1,,\na,0.750001,30,40,x,8\n");
  const RequestList list = made({"file:" + path + ",where=who:a,tenant=me,priority=3"});
  ASSERT_EQ(list.requests.size(), 2U);
  EXPECT_EQ(list.tenants[0].name, "me");
  EXPECT_EQ(list.requests[1].arrival.since_start, Duration(750'001'000'000));
  EXPECT_EQ(list.requests[1].input_tokens, 30);
  EXPECT_EQ(list.requests[1].prefix_tokens, 8);
  EXPECT_EQ(list.requests[0].prefix, list.requests[1].prefix);
  EXPECT_EQ(list.requests[0].priority, 3);
}

TEST(RequestSourceTest, PublishedTracesAreReadAsTheyAre) {
  const auto read = [](const char* file) {
    return made({"file:" + (reference_folder() / "reports" / "serving-traces" / file).string()});
  };
  const RequestList azure = read("azure.csv");
  ASSERT_EQ(azure.requests.size(), 3U);
  EXPECT_EQ(azure.requests[2].arrival.since_start, 99ms);  // 18:17:04.0789600 - 18:17:03.9799600
  EXPECT_EQ(azure.requests[1].input_tokens, 3180);
  const RequestList burst = read("burstgpt.csv");
  EXPECT_EQ(burst.requests[2].arrival.since_start, 113s);
  EXPECT_EQ(burst.requests[2].output_tokens, 276);
  EXPECT_EQ(read("vidur.csv").requests[1].arrival.since_start, 500ms);
  const RequestList bench = read("bench.json");
  ASSERT_EQ(bench.requests.size(), 2U) << "the one that failed is left out";
  EXPECT_EQ(bench.requests[1].arrival.since_start, 500ms);
  const RequestList mooncake = read("mooncake.jsonl");
  ASSERT_EQ(mooncake.requests.size(), 3U);
  EXPECT_EQ(mooncake.requests[2].arrival.since_start, 1s);
  ASSERT_EQ(mooncake.chains.size(), 3U);
  EXPECT_EQ(mooncake.chains[0].piece_of(1535), mooncake.chains[1].piece_of(1535));
  EXPECT_NE(mooncake.chains[0].piece_of(1536), mooncake.chains[1].piece_of(1536));
  EXPECT_EQ(mooncake.requests[2].prefix_tokens, 700);
}

TEST(RequestSourceTest, BrokenTracesAreRefused) {
  const std::string cut = written("cut.jsonl", "{\"timestamp\": 0, \"input_length\": 5,\n");
  ASSERT_EQ(problems_of("file:" + cut).size(), 1U);
  EXPECT_EQ(problems_of("file:" + cut)[0].field, cut + ":2");
  const std::string date =
      written("date.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-01 00:00:00,1,1\n");
  EXPECT_EQ(problems_of("file:" + date)[0].field, date + ":2 TIMESTAMP");
}

TEST(RequestSourceTest, EmpiricalLengthsComeFromOneRow) {
  const std::string path =
      written("lengths.csv", "input_tokens,output_tokens\n1,100\n2,200\n3,300\n");
  const RequestList list =
      made({"burst:count=300,input=empirical:" + path + ",output=empirical:" + path});
  std::map<std::int32_t, int> rows;
  for (const Request& request : list.requests) {
    EXPECT_EQ(request.output_tokens, 100 * request.input_tokens);
    ++rows[request.input_tokens];
  }
  EXPECT_EQ(rows.size(), 3U);
}

TEST(RequestSourceTest, EveryProblemOfATextIsSaid) {
  const std::vector<Problem> problems =
      problems_of("poisson:rate=0,count=1.5,inptu=3,output=uniform:9-3");
  ASSERT_EQ(problems.size(), 5U);
  EXPECT_EQ(problems[0].field, "--requests rate");
  EXPECT_EQ(problems[0].message, "must be at least 1e-06, is 0");
  EXPECT_EQ(problems[1].field, "--requests count");
  EXPECT_NE(problems[2].message.find("did you mean input?"), std::string::npos);
  EXPECT_EQ(problems[3].field, "--requests output");
  EXPECT_EQ(problems[4].message.substr(0, 15), "must have input");
}

TEST(RequestSourceTest, FilesWithNegativeOrUnsortedArrivalsAreRefused) {
  const std::string path = written("wrong.csv",
                                   "arrival_us,input_tokens,output_tokens\n"
                                   "-1,1,1\n7,1,1\n6,0,1\n8,1,x\n");
  const std::vector<Problem> problems = problems_of("file:" + path);
  ASSERT_EQ(problems.size(), 4U);
  EXPECT_EQ(problems[0].field, path + ":2 arrival_us");
  EXPECT_EQ(problems[0].message, "must be a time that is not negative, is \"-1\"");
  EXPECT_EQ(problems[1].field, path + ":4 input_tokens");
  EXPECT_EQ(problems[2].message, "must not be before the row above (0.000007000000 s), is \"6\"");
  EXPECT_EQ(problems[3].field, path + ":5 output_tokens");
}

}  // namespace
}  // namespace stepsim
