// Cases that a hand can compute: tests/reference/serving/exact_cases.csv, row by row.

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/serving_case.h"

namespace stepsim {
namespace {

using namespace literals;
using Times = std::vector<std::int64_t>;

constexpr Duration kStep = 10ms;

Duration part(const RequestRecord& record, RequestPart which) {
  return record.parts[static_cast<std::size_t>(which)];
}

TEST(ExactServingTest, ASingleRequestTakesAStepForEachToken) {  // row 1
  const ServingResult result = serve(requests_of({{0ms, 100, 5}}), plain_engine());
  const RequestRecord& record = result.requests[RequestId(0)];
  EXPECT_EQ(record.time_to_first_token(), kStep);
  EXPECT_EQ(record.longest_gap, kStep);
  EXPECT_EQ(record.time_per_output_token(), kStep);
  EXPECT_EQ(record.end_to_end(), 5 * kStep);
  EXPECT_EQ(result.peak_kv_blocks, 7);  // ceil(104 / 16): the last token is never kept
}

TEST(ExactServingTest, ALongPromptIsCutIntoChunks) {  // row 2
  EngineOptions engine = plain_engine();
  engine.batching.budget = 2048;
  const ServingResult result = serve(requests_of({{0ms, 5000, 2}}), engine);
  EXPECT_EQ(first_tokens_ms(result), Times({30}));  // 2048 + 2048 + 904
  EXPECT_EQ(end_to_end_ms(result), Times({40}));
  EXPECT_EQ(result.peak_kv_blocks, 313);
}

TEST(ExactServingTest, OneRequestAtATimeWaitsAsLindleySays) {  // row 3
  EngineOptions engine = plain_engine();
  engine.batching.sequences = 1;
  const ServingResult result =
      serve(requests_of({{0ms}, {3ms}, {7ms}, {30ms}, {31ms}, {32ms}, {60ms}}), engine);
  EXPECT_EQ(end_to_end_ms(result), Times({10, 17, 23, 10, 19, 28, 10}));
}

TEST(ExactServingTest, DecodesAndChunksShareABudget) {  // row 4
  EngineOptions engine = plain_engine();
  engine.batching.budget = 8;
  ServingOptions options;
  options.replicas.options = engine;
  options.records_steps = true;
  LinearStepTime cost({.base = kStep});
  const ServingResult result =
      simulate_serving(requests_of({{0ms, 4, 3}, {0ms, 4, 3}, {0ms, 4, 3}, {0ms, 4, 3}}), options,
                       {.replicas = cost});
  EXPECT_EQ(first_tokens_ms(result), Times({10, 10, 20, 30}));
  EXPECT_EQ(end_to_end_ms(result), Times({30, 30, 40, 50}));
  EXPECT_EQ(result.peak_kv_blocks, 4);
  // Tokens by step: 4 4 - - | 1 1 4 2 | 1 1 1 2 | - - 1 1 | - - - 1.
  std::vector<std::pair<std::int64_t, std::int32_t>> steps;
  for (const StepRecord& step : result.step_records) {
    steps.emplace_back(step.chunk_tokens, step.decodes);
  }
  EXPECT_EQ(steps, (std::vector<std::pair<std::int64_t, std::int32_t>>{
                       {8, 0}, {6, 2}, {2, 3}, {0, 2}, {0, 1}}));
}

TEST(ExactServingTest, AnEqualBatchHasAClosedForm) {  // row 5
  const std::vector<AskedRequest> asked(8, {0us, 32, 4});
  const ServingResult result =
      serve(requests_of(asked), plain_engine(), {.base = 1000us, .token = 10us, .kv = 1us});
  for (const RequestRecord& record : result.requests) {
    EXPECT_EQ(record.time_to_first_token(), Duration(3816us));  // 1000 + 10 x 8 x 32 + 8 x 32
    EXPECT_EQ(record.longest_gap, Duration(1360us));            // 1000 + 10 x 8 + 8 x (32 + 3)
    EXPECT_EQ(record.end_to_end(), Duration(7872us));           // + 1344 + 1352 + 1360
  }
}

TEST(ExactServingTest, WhoIsPreemptedComputesEverythingAgain) {  // row 6
  for (const bool gate : {true, false}) {
    EngineOptions engine = plain_engine();
    engine.cache.kv_blocks = 8;
    engine.cache.reserve_whole_sequence = gate;
    const ServingResult result = serve(requests_of({{0ms, 48, 40}, {0ms, 48, 40}}), engine);
    const RequestRecord& second = result.requests[RequestId(1)];
    EXPECT_EQ(end_to_end_ms(result), Times({400, 630}));
    EXPECT_EQ(result.requests[RequestId(0)].preemptions, 0);
    EXPECT_EQ(second.preemptions, 1);
    EXPECT_EQ(second.longest_gap, 24 * kStep);
    EXPECT_EQ(result.peak_kv_blocks, 8);
    EXPECT_EQ(part(second, RequestPart::kPreempted), 23 * kStep);  // from 170 to 400 ms
    EXPECT_EQ(part(second, RequestPart::kPrefill), 2 * kStep);     // 48 tokens, then 65
    EXPECT_EQ(part(second, RequestPart::kDecode), 38 * kStep);
  }
}

TEST(ExactServingTest, TheGateKeepsOutWhatWouldBePreempted) {  // row 7
  EngineOptions engine = plain_engine();
  engine.cache.kv_blocks = 10;
  engine.batching.budget = 64;
  for (const bool gate : {true, false}) {
    engine.cache.reserve_whole_sequence = gate;
    const ServingResult result = serve(requests_of({{0ms, 96, 2}, {0ms, 96, 2}}), engine);
    EXPECT_EQ(first_tokens_ms(result), Times({20, 50}));
    EXPECT_EQ(result.preemptions, gate ? 0 : 1);
    EXPECT_EQ(result.peak_kv_blocks, gate ? 7 : 8);
  }
}

TEST(ExactServingTest, APrefixIsComputedOnce) {  // row 8
  EngineOptions engine = plain_engine();
  engine.cache.prefix_cache = true;
  engine.cache.kv_blocks = 100;
  // 64 tokens are 4 blocks, but one token at least is computed: 3 hits. 65 tokens hit 4.
  const ServingResult result =
      serve(requests_of({{0ms, 64, 1, 64}, {20ms, 64, 1, 64}, {40ms, 65, 1, 64}}), engine,
            {.base = 1ms, .token = 1us});
  EXPECT_EQ(result.hit_tokens, 48 + 64);
  EXPECT_EQ(result.requests[RequestId(0)].end_to_end(), Duration(1064us));
  EXPECT_EQ(result.requests[RequestId(1)].end_to_end(), Duration(1016us));
  EXPECT_EQ(result.requests[RequestId(2)].end_to_end(), Duration(1001us));
}

TEST(ExactServingTest, AcceptedDraftsComeWithTheirToken) {  // row 9
  EngineOptions engine = plain_engine();
  engine.speculation.drafts = 3;
  engine.speculation.accepted = 2;
  ServingResult result = serve(requests_of({{0ms, 16, 10}}), engine);
  const RequestRecord& record = result.requests[RequestId(0)];
  EXPECT_EQ(result.steps, 4);
  EXPECT_EQ(record.end_to_end(), 4 * kStep);
  EXPECT_EQ(record.time_per_output_token(), 3 * kStep / 9);
  // Tokens at 10, 20 x 3, 30 x 3, 40 x 3: three gaps of a step, six of nothing.
  ASSERT_EQ(result.gaps.sorted().size(), 2U);
  EXPECT_EQ(result.gaps.sorted()[0].count, 6);
  EXPECT_EQ(result.gaps.sorted()[1].count, 3);
}

TEST(ExactServingTest, DraftsThatAreOftenRightGiveAGeometricMean) {  // row 9
  EngineOptions engine = plain_engine();
  engine.speculation.drafts = 3;
  engine.speculation.acceptance = 0.8;
  engine.batching.sequences = 100;
  const std::vector<AskedRequest> asked(100, {0ms, 16, 2001});
  const ServingResult result = serve(requests_of(asked), engine);
  // (1 - 0.8^4) / (1 - 0.8) = 2.952 tokens a try. The standard deviation of a try is 1.2, so the
  // mean of 67,000 tries is within 0.014 of it (3 standard errors); so are last tries cut short.
  const double tries = static_cast<double>(result.drafts_tried) / 3;
  EXPECT_NEAR(static_cast<double>(result.drafts_accepted) / tries + 1, 2.952, 0.014);
}

TEST(ExactServingTest, TheRooflineOfADecodeIsRoundedUpOnce) {  // row 10a
  const Bandwidth memory(16 * 810e9);
  EXPECT_EQ(Bytes(70'000'000'000) / memory, Duration(5'401'234'568));
  EXPECT_EQ(Bytes(70'000'000'000 + 43LL * 8192 * 163'840) / memory, Duration(9'854'446'223));
}

TEST(ExactServingTest, ASecondTokenWaitsForItsCache) {  // row 10b
  // 2,684,354,560 B over 8 cards of 50 GB/s: 6,710,886,400 ps, and the latency of a path.
  const Duration transfer = Bytes(8192LL * 327'680) / Bandwidth(8 * 50e9);
  ASSERT_EQ(transfer, Duration(6'710'886'400));
  const Duration latency = 5us;
  ServingOptions options;
  options.replicas.options = plain_engine();
  options.decode = options.replicas;
  LinearStepTime prefill({.base = 300ms});
  LinearStepTime decode({.base = kStep});
  TimedKvTransport transport({.base = transfer + latency});
  const ServingResult result =
      simulate_serving(requests_of({{0ms, 8192, 3}}), options,
                       {.replicas = prefill, .decode = &decode, .transport = &transport});
  const RequestRecord& record = result.requests[RequestId(0)];
  EXPECT_EQ(record.time_to_first_token(), Duration(300ms));
  EXPECT_EQ(record.longest_gap, transfer + latency + kStep);
  EXPECT_EQ(record.end_to_end(), Duration(300ms) + transfer + latency + 2 * kStep);
  EXPECT_EQ(part(record, RequestPart::kTransfer), transfer + latency);
}

TEST(ExactServingTest, MostOfAnAllToAllLeavesTheChip) {  // row 10c
  // 128 tokens x 8 experts x 7168, 71 of 72 parts leave; fp8 out, bf16 back.
  const Bandwidth nvlink(900e9);
  const double values = 128.0 * 8 * 7168 * 71 / 72;
  EXPECT_EQ(duration_from_picoseconds(values * 1e12 / nvlink.value()), Duration(8'042'320));
  EXPECT_EQ(duration_from_picoseconds(2 * values * 1e12 / nvlink.value()), Duration(16'084'639));
  EXPECT_EQ(Bytes(4LL * 3 * 7168 * 2048) / Bandwidth(8e12), Duration(22'020'096));
}

}  // namespace
}  // namespace stepsim
