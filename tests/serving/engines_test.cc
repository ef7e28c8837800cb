// What each engine does that the others don't, with numbers that a hand can compute.

#include <gtest/gtest.h>

#include <numeric>

#include "serving/requests/request_source.h"
#include "serving/serving_text.h"
#include "tests/support/serving_case.h"

namespace stepsim {
namespace {

using namespace literals;
using Times = std::vector<std::int64_t>;

ServingOptions options_of(const std::string& engine) {
  std::vector<Problem> problems;
  ServingOptions options;
  options.replicas = read_engine(engine, problems);
  throw_if_any(problems);
  options.records_steps = true;
  return options;
}

ServingResult run(const std::string& engine, const std::vector<AskedRequest>& asked) {
  LinearStepTime cost({.base = 10ms});
  const RequestList list = requests_of(asked);
  const ServingOptions options = options_of(engine);
  throw_if_any(check(list, options));
  return simulate_serving(list, options, {.replicas = cost});
}

// "8+0 6+2": prefill tokens and decodes of each step.
std::string steps_of(const ServingResult& result) {
  std::string text;
  for (const StepRecord& step : result.step_records) {
    text += (text.empty() ? "" : " ") + std::to_string(step.chunk_tokens) + "+" +
            std::to_string(step.decodes);
  }
  return text;
}

TEST(EnginesTest, SarathiLetsDecodesGoBeforeChunks) {
  // r0 decodes while r1's prompt takes what the budget of 8 leaves.
  const ServingResult result = run("sarathi,budget=8", {{0ms, 4, 4}, {10ms, 20, 1}});
  EXPECT_EQ(steps_of(result), "4+0 7+1 7+1 6+1");
}

TEST(EnginesTest, SglangPrefillsAlone) {
  // r1 arrives in r0's first step: its prompt goes alone, then both decode.
  const ServingResult result = run("sglang,chunk=16", {{0ms, 4, 3}, {5ms, 20, 2}});
  EXPECT_EQ(steps_of(result), "4+0 16+0 4+0 0+2 0+1");
  EXPECT_EQ(steps_of(run("sglang,chunk=16,mixed-chunk=true", {{0ms, 4, 3}, {5ms, 20, 2}})),
            "4+0 16+1 4+1 0+1");
}

TEST(EnginesTest, SglangKeepsRoomForAShareOfAnswers) {
  // 0.7 x 10 tokens of r0's answer are kept: 40 + 7 + 20 + 7 > 70, so r1 waits for r0's end,
  // though both prompts would fit. Without conservativeness both are admitted.
  const std::vector<AskedRequest> asked = {{0ms, 40, 11}, {0ms, 20, 11}};
  EXPECT_EQ(first_tokens_ms(run("sglang,kv-blocks=70", asked)).at(1), 120);
  EXPECT_EQ(first_tokens_ms(run("sglang,kv-blocks=90,conservativeness=0", asked)).at(1), 10);
}

TEST(EnginesTest, SglangRetractsTheShortestAnswer) {
  const ServingResult result = run("sglang,kv-blocks=30,conservativeness=0,prefix-cache=false",
                                   {{0ms, 8, 20}, {50ms, 8, 12}});
  EXPECT_EQ(result.requests[RequestId(0)].preemptions, 0);
  EXPECT_EQ(result.requests[RequestId(1)].preemptions, 1);
}

TEST(EnginesTest, TrtllmWithoutEvictionAdmitsWhatSurelyEnds) {
  // Two requests of 32 + 32 tokens take 2 blocks of 32 each; the cache has 3.
  const std::vector<AskedRequest> asked = {{0ms, 32, 32}, {0ms, 32, 32}};
  const ServingResult safe = run("trtllm,kv-blocks=3", asked);
  EXPECT_EQ(safe.preemptions, 0);
  EXPECT_EQ(first_tokens_ms(safe), Times({10, 330}));
  const ServingResult full = run("trtllm,kv-blocks=3,capacity=max-utilisation", asked);
  EXPECT_EQ(first_tokens_ms(full), Times({10, 10}));
  EXPECT_EQ(full.preemptions, 1);
}

TEST(EnginesTest, TrtllmTakesWholePrompts) {
  // 6 of r1's tokens don't fit beside r0's 4 in 8: they wait, unless prompts are cut.
  const std::vector<AskedRequest> asked = {{0ms, 4, 2}, {0ms, 6, 1}};
  EXPECT_EQ(steps_of(run("trtllm,budget=8", asked)), "4+0 6+1");
  EXPECT_EQ(steps_of(run("trtllm,budget=8,chunked-prefill=true", asked)), "8+0 2+1");
}

TEST(EnginesTest, OrcaReservesWholeAnswers) {
  const ServingResult result = run("orca,kv-blocks=19", {{0ms, 4, 6}, {0ms, 4, 6}, {0ms, 4, 5}});
  EXPECT_EQ(first_tokens_ms(result), Times({10, 70, 70}));
  EXPECT_EQ(result.peak_kv_blocks, 19);
}

TEST(EnginesTest, AStaticBatchEndsAsOne) {
  const ServingResult result = run("static,sequences=2", {{0ms, 4, 1}, {0ms, 4, 5}, {0ms, 4, 1}});
  EXPECT_EQ(end_to_end_ms(result), Times({10, 50, 60}));
  EXPECT_EQ(steps_of(result), "8+0 0+1 0+1 0+1 0+1 4+0");
}

TEST(EnginesTest, HostTimeHidesBehindAsynchronousSteps) {
  const std::vector<AskedRequest> asked = {{0ms, 4, 4}};
  EXPECT_EQ(end_to_end_ms(run("vllm,host-time=2ms", asked)), Times({48}));
  EXPECT_EQ(end_to_end_ms(run("vllm,host-time=2ms,async=true", asked)), Times({42}));
  EXPECT_EQ(end_to_end_ms(run("vllm,host-time=15ms,async=true", asked)), Times({70}));
}

// The second request comes at 5 ms and is seen at 8: the step at 10 ms takes it.
TEST(EnginesTest, ARequestIsSeenAfterTheFrontTime) {
  const std::vector<AskedRequest> asked = {{0ms, 4, 4}, {5ms, 4, 1}};
  EXPECT_EQ(end_to_end_ms(run("vllm,front-time=3ms", asked)), Times({43, 18}));
  EXPECT_EQ(first_tokens_ms(run("vllm,front-time=3ms", asked)), Times({13, 18}));
}

TEST(EnginesTest, AsynchronousStepsMissArrivalsMeanwhile) {
  const std::vector<AskedRequest> asked = {{0ms, 4, 4}, {5ms, 4, 1}};
  EXPECT_EQ(first_tokens_ms(run("vllm", asked)).at(1), 15);
  EXPECT_EQ(first_tokens_ms(run("vllm,async=true", asked)).at(1), 25);
}

TEST(EnginesTest, PrioritiesGoFirstAndTakeRoom) {
  RequestList list = requests_of({{0ms, 16, 20}, {0ms, 16, 20}, {1ms, 16, 1}});
  list.requests[1].priority = -1;
  list.requests[2].priority = -2;
  ServingOptions options = options_of("vllm,sequences=1,policy=priority");
  LinearStepTime cost({.base = 10ms});
  const ServingResult result = simulate_serving(list, options, {.replicas = cost});
  EXPECT_EQ(first_tokens_ms(result), Times({220, 10, 209}));
}

TEST(EnginesTest, ADraftModelTakesTimeAndBlocksAhead) {
  const ServingResult result =
      run("vllm,drafts=3,accepted=3,drafter=mtp,draft-time=1ms", {{0ms, 16, 9}});
  EXPECT_EQ(end_to_end_ms(result), Times({10 + 2 * 13}));
  EXPECT_EQ(result.peak_kv_blocks, 2);  // 16 + 4 + 4 tokens, and 3 ahead
}

TEST(EnginesTest, APreemptedRequestThatGrewTooLongIsStuck) {
  // Without chunks 5 tokens of a prompt and 6 of an answer no longer fit a step of 10.
  EXPECT_THROW(run("vllm,budget=10,chunked-prefill=false,kv-blocks=2,block=10",
                   {{0ms, 5, 10}, {0ms, 5, 10}}),
               ServingStuck);
}

TEST(EnginesTest, ARequestWhoseDraftsNeverFitIsStuck) {
  // 8 + 3 tokens fit 10 blocks of a token, but not 9 + 5 drafts. Computed again in chunks of 4, the
  // ninth token is a chunk of its own, and its drafts are tried again. In one chunk there are none.
  const std::string engine = "vllm,block=1,kv-blocks=10,drafts=5,accepted=0,prefix-cache=false";
  EXPECT_THROW(run(engine + ",long-prefill-threshold=4", {{0ms, 8, 3}}), ServingStuck);
  EXPECT_EQ(run(engine, {{0ms, 8, 3}}).preemptions, 2);
}

// Each of eight ranks computes 4,096 tokens of its own prompt: four steps of 32,768.
TEST(EnginesTest, APromptIsOneRanks) {
  const std::vector<AskedRequest> asked(8, {0ms, 16384, 1});
  for (const char* const engine :
       {"vllm,budget=4096", "sglang,chunk=4096", "sarathi,budget=4096,kv-blocks=20000",
        "trtllm,budget=4096,chunked-prefill=true"}) {
    ServingOptions options = options_of(engine);
    options.replicas.options = of_ranks(options.replicas.options, 8);
    options.records_steps = true;
    LinearStepTime cost({.base = 1ms});
    const ServingResult result = simulate_serving(requests_of(asked), options, {.replicas = cost});
    ASSERT_EQ(result.steps, 4) << engine;
    for (const StepRecord& step : result.step_records) {
      EXPECT_EQ(step.chunks, 8) << engine;
      EXPECT_EQ(step.chunk_tokens, 8 * 4096) << engine;
    }
  }
  // Without chunks a prompt must fit the budget of a rank.
  ServingOptions whole = options_of("trtllm,budget=4096");
  whole.replicas.options = of_ranks(whole.replicas.options, 8);
  EXPECT_EQ(check(requests_of(asked), whole).size(), 8U);
}

// All engines serve the same random requests in a small cache: everything is answered, blocks and
// parts add up (asserted inside), and nothing is faster than a step a token.
TEST(EnginesTest, EveryEngineAnswersEverything) {
  std::vector<Problem> problems;
  const RequestSource source = read_request_source(
      "gamma:rate=20,burstiness=0.3,count=2000,input=uniform:1-300,output=uniform:1-60,prefix=64,"
      "prefixes=5",
      problems);
  ASSERT_TRUE(problems.empty());
  const RequestList list = make_requests({&source, 1});
  for (const char* const engine :
       {"vllm,kv-blocks=100", "vllm,kv-blocks=60,async=true,host-time=1ms,policy=priority",
        "vllm,kv-blocks=60,async=true,drafts=3,acceptance=0.6,drafter=mtp",
        "vllm,kv-blocks=40,reserve-whole-sequence=false,watermark=0.05,budget=100",
        "sglang,kv-blocks=1000,policy=longest-prefix",
        "sglang,kv-blocks=700,mixed-chunk=true,"
        "conservativeness=0.1,chunk=64,drafts=2,accepted=1",
        "trtllm,kv-blocks=40", "trtllm,kv-blocks=20,capacity=max-utilisation,chunked-prefill=true",
        "orca,kv-blocks=1000", "sarathi,kv-blocks=60", "static,kv-blocks=1000"}) {
    ServingOptions options = options_of(engine);
    ASSERT_TRUE(check(list, options).empty()) << engine;
    LinearStepTime cost({.base = 1ms, .token = 10us});
    const ServingResult result = simulate_serving(list, options, {.replicas = cost});
    std::int64_t tokens = 0;
    for (std::uint32_t i = 0; i < list.requests.size(); ++i) {
      tokens += result.requests[RequestId(i)].tokens - list.requests[i].output_tokens;
    }
    EXPECT_EQ(tokens, 0) << engine;
    EXPECT_LE(result.peak_kv_blocks, result.kv_blocks) << engine;
  }
}

TEST(RouterTest, PoliciesChooseAsTheySay) {
  const std::vector<AskedRequest> asked = {
      {0ms, 100, 50}, {1ms, 10, 50}, {2ms, 10, 50}, {3ms, 200, 50}, {4ms, 10, 50}};
  ServingOptions options = options_of("vllm");
  options.replicas.count = 2;
  LinearStepTime cost({.base = 10ms});
  const auto replicas = [&](RouterPolicy policy) {
    options.router = policy;
    const ServingResult result = simulate_serving(requests_of(asked), options, {.replicas = cost});
    Times of;
    for (const RequestRecord& record : result.requests) of.push_back(record.replica);
    return of;
  };
  EXPECT_EQ(replicas(RouterPolicy::kRoundRobin), Times({0, 1, 0, 1, 0}));
  EXPECT_EQ(replicas(RouterPolicy::kLeastTokens), Times({0, 1, 1, 1, 0}));
}

TEST(RouterTest, APrefixIsSoughtWhereItIs) {
  RequestList list = requests_of({{0ms, 64, 1, 64}, {1s, 64, 1, 64}, {2s, 64, 1, 64}});
  list.requests[1].prefix = PrefixId(1);
  list.requests[2].prefix = PrefixId(1);
  ServingOptions options = options_of("vllm,kv-blocks=100");
  options.replicas.count = 2;
  options.router = RouterPolicy::kPrefixAware;
  LinearStepTime cost({.base = 10ms});
  const ServingResult first = simulate_serving(list, options, {.replicas = cost});
  EXPECT_EQ(first.hit_tokens, 48);
  list.requests[0].output_tokens = 150;  // keeps replica 0 busy, so prefix 1 lives on replica 1
  const ServingResult second = simulate_serving(list, options, {.replicas = cost});
  EXPECT_EQ(second.requests[RequestId(2)].replica, 1U);
  EXPECT_EQ(second.hit_tokens, 48);
}

TEST(DisaggregatedTest, DecodesAdmitOnlyWhatFits) {
  ServingOptions options = options_of("vllm,kv-blocks=100");
  options.decode = options.replicas;
  options.decode->options.cache.kv_blocks = 3;  // one request of 32 + 10 tokens at a time
  LinearStepTime cost({.base = 10ms});
  TimedKvTransport transport({.base = 5ms});
  const ServingResult result =
      simulate_serving(requests_of({{0ms, 32, 10}, {0ms, 32, 10}}), options,
                       {.replicas = cost, .decode = &cost, .transport = &transport});
  const auto part = [&result](std::uint32_t request, RequestPart which) {
    return result.requests[RequestId(request)].parts[static_cast<std::size_t>(which)];
  };
  EXPECT_EQ(first_tokens_ms(result), Times({10, 10}));
  EXPECT_EQ(end_to_end_ms(result).at(0), 10 + 5 + 90);
  EXPECT_EQ(part(1, RequestPart::kQueue), Duration(95ms));  // until the first has ended
  EXPECT_EQ(part(1, RequestPart::kTransfer), Duration(5ms));
  EXPECT_EQ(end_to_end_ms(result).at(1), 105 + 5 + 90);
  EXPECT_TRUE(result.replicas[0].is_prefill);
}

TEST(DisaggregatedTest, EverythingIsAnswered) {
  std::vector<Problem> problems;
  const RequestSource source = read_request_source(
      "closed:concurrency=40,count=1000,think=3ms,input=uniform:1-300,output=uniform:1-60",
      problems);
  const RequestList list = make_requests({&source, 1});
  ServingOptions options = options_of("vllm,kv-blocks=60");
  options.replicas.count = 3;
  options.decode = read_group("workers=2,kv-blocks=50", "--decode", options.replicas, problems);
  ASSERT_TRUE(problems.empty());
  LinearStepTime cost({.base = 1ms, .token = 10us});
  TimedKvTransport transport({.base = 1ms, .token = 5us});
  const ServingResult result =
      simulate_serving(list, options, {.replicas = cost, .decode = &cost, .transport = &transport});
  EXPECT_GT(result.replicas[4].steps, 0);
  EXPECT_GT(result.replicas[2].steps, 0);
}

// Without chunks a decode replica can't compute a long request again, so it takes none that might
// be preempted: 30 blocks hold a request of up to 26 and, with it, few others.
TEST(DisaggregatedTest, DecodeReservesWhatCantBeComputedAgain) {
  std::vector<Problem> problems;
  const RequestSource source = read_request_source(
      "poisson:rate=50,count=300,input=uniform:20-200,output=uniform:5-200", problems);
  const RequestList list = make_requests({&source, 1});
  const auto served = [&](const std::string& budget) {
    ServingOptions options =
        options_of("vllm,chunked-prefill=false,kv-blocks=60,prefix-cache=false,budget=" + budget);
    options.decode = read_group("kv-blocks=30", "--decode", options.replicas, problems);
    throw_if_any(problems);
    LinearStepTime cost({.base = 1ms, .token = 10us});
    TimedKvTransport transport({.base = 1ms});
    return simulate_serving(list, options,
                            {.replicas = cost, .decode = &cost, .transport = &transport});
  };
  EXPECT_EQ(served("210").replicas.at(1).preemptions, 0);
  EXPECT_GT(served("400").replicas.at(1).preemptions, 0);  // can compute all again
}

std::int64_t part_ms(const ServingResult& result, std::uint32_t request, RequestPart part) {
  const RequestRecord& record = result.requests[RequestId(request)];
  return record.parts[static_cast<std::size_t>(part)].count() / 1'000'000'000;
}

// With one slot prompts and tokens take turns, and r1 and r2 wait for the slot behind their first
// tokens.
TEST(JetstreamTest, CachesWaitForASlot) {
  const ServingResult result =
      run("jetstream,sequences=1", {{0ms, 4, 3}, {0ms, 4, 3}, {0ms, 4, 3}});
  EXPECT_EQ(steps_of(result), "4+0 0+1 4+0 0+1 4+0 0+1 0+1 0+1 0+1");
  EXPECT_EQ(first_tokens_ms(result), Times({10, 30, 50}));
  EXPECT_EQ(end_to_end_ms(result), Times({40, 70, 90}));
  EXPECT_EQ(part_ms(result, 1, RequestPart::kQueue), 20 + 10);
  EXPECT_EQ(part_ms(result, 1, RequestPart::kDecode), 30);
  EXPECT_EQ(part_ms(result, 2, RequestPart::kQueue), 40 + 20);
  EXPECT_EQ(result.replicas.front().peak_backlog, 1);
}

// While slots are free prompts go first, and nobody gets a second token.
TEST(JetstreamTest, FreeSlotsAreFilledFirst) {
  const ServingResult result =
      run("jetstream,sequences=3", {{0ms, 4, 2}, {0ms, 4, 2}, {0ms, 4, 2}, {0ms, 4, 2}});
  EXPECT_EQ(steps_of(result), "4+0 4+0 4+0 0+3 4+0 0+1");
  EXPECT_EQ(first_tokens_ms(result), Times({10, 20, 30, 50}));
}

// Four caches can wait with backlogs of 1 and 1; the prompt of the last request is computed when
// one of them has got the slot, though the others' first tokens came long before.
TEST(JetstreamTest, PrefillStopsWhenBacklogsAreFull) {
  const std::vector<AskedRequest> asked(7, {0ms, 4, 20});
  const ServingResult result = run("jetstream,sequences=1", asked);
  EXPECT_EQ(first_tokens_ms(result), Times({10, 30, 50, 70, 90, 250, 450}));
  EXPECT_EQ(result.replicas.front().peak_backlog, 4);
  const ServingResult longer = run("jetstream,sequences=1,transfer-backlog=2", asked);
  EXPECT_EQ(first_tokens_ms(longer), Times({10, 30, 50, 70, 90, 110, 260}));
}

// A prompt of 20 tokens is computed as 32, and a token of one request as those of 4 slots.
TEST(JetstreamTest, PaddingIsComputed) {
  const auto times = [](const std::string& engine) {
    LinearStepTime cost({.token = 1ms});
    return end_to_end_ms(
        simulate_serving(requests_of({{0ms, 20, 2}}), options_of(engine), {.replicas = cost}));
  };
  EXPECT_EQ(times("jetstream,sequences=4"), Times({32 + 4}));
  EXPECT_EQ(times("jetstream,sequences=4,pads-prompts=false"), Times({20 + 4}));
}

TEST(JetstreamTest, SlotsOfFullLengthNeedTheirRoom) {
  const RequestList list = requests_of({{0ms, 20, 2}});
  EXPECT_TRUE(check(list, options_of("jetstream,max-length=100,kv-blocks=100")).empty());
  EXPECT_FALSE(check(list, options_of("jetstream,max-length=100,kv-blocks=99")).empty());
}

TEST(JetstreamTest, EverythingIsAnsweredAlsoApart) {
  std::vector<Problem> problems;
  const RequestSource source = read_request_source(
      "closed:concurrency=40,count=600,input=uniform:1-300,output=uniform:1-60", problems);
  const RequestList list = make_requests({&source, 1});
  for (const bool is_apart : {false, true}) {
    ServingOptions options = options_of("jetstream,sequences=6,transfer-backlog=4");
    options.replicas.count = 2;
    if (is_apart) {
      options.decode =
          read_group("sequences=9,generate-backlog=3", "--decode", options.replicas, problems);
    }
    ASSERT_TRUE(problems.empty());
    LinearStepTime cost({.base = 1ms, .token = 10us});
    TimedKvTransport transport({.base = 2ms});
    const ServingResult result = simulate_serving(
        list, options, {.replicas = cost, .decode = &cost, .transport = &transport});
    EXPECT_GT(result.replicas.front().peak_backlog, 1);
    EXPECT_LE(result.replicas.front().peak_backlog, 7);
    if (is_apart) {
      EXPECT_LE(result.replicas.back().peak_backlog, 3);
    }
  }
}

// Two prefixes of 4 blocks take turns in a pool of 5 blocks: each request evicts what the one
// before had, and finds its own in the host's memory, which takes 3 ms.
TEST(HostMemoryTest, BeginningsComeBackFromTheHost) {
  const auto asked = [](const std::string& host) {
    RequestList list =
        requests_of({{0ms, 65, 1, 64}, {1s, 65, 1, 64}, {2s, 65, 1, 64}, {3s, 65, 1, 64}});
    list.requests[1].prefix = PrefixId(1);
    list.requests[3].prefix = PrefixId(1);
    const ServingOptions options = options_of("vllm,kv-blocks=5" + host);
    LinearStepTime cost({.base = 5ms, .token = 1ms});
    TimedKvTransport way({.base = 1ms, .token = Duration(31'250'000)});  // 64 tokens: 2 ms
    ServingCosts costs{.replicas = cost};
    costs.host = &way;
    return simulate_serving(list, options, costs);
  };
  const ServingResult without = asked("");
  EXPECT_EQ(first_tokens_ms(without), Times({70, 70, 70, 70}));
  const ServingResult with = asked(",host-blocks=100");
  EXPECT_EQ(first_tokens_ms(with), Times({70, 70, 3 + 5 + 1, 3 + 5 + 1}));
  EXPECT_EQ(with.host_hit_tokens, 128);
  EXPECT_EQ(with.hit_tokens, 128);
  const auto part = [&with](RequestPart which) {
    return with.requests[RequestId(2)].parts[static_cast<std::size_t>(which)];
  };
  EXPECT_EQ(part(RequestPart::kTransfer), Duration(3ms));
  EXPECT_EQ(part(RequestPart::kPrefill), Duration(6ms));
  const HostTierTotals& host = with.replicas.front().host;
  EXPECT_EQ(host.read, 8);
  EXPECT_EQ(host.dropped, 0);
  EXPECT_EQ(host.written, host.peak);
  EXPECT_GE(host.written, 8);
}

// A run checks that no block is lost, on the chips and in the hosts' memory. More room finds more.
TEST(HostMemoryTest, EverythingIsAnsweredAndBlocksAreConserved) {
  for (const std::string engine :
       {"vllm,async=true,host-time=2ms,", "vllm,policy=priority,drafts=2,acceptance=0.5,",
        "vllm,watermark=0.1,", "sglang,block=16,",
        "sglang,block=16,policy=longest-prefix,mixed-chunk=true,", "trtllm,block=16,",
        "trtllm,block=16,capacity=max-utilisation,chunked-prefill=true,"}) {
    std::vector<Problem> problems;
    const RequestSource source = read_request_source(
        "closed:concurrency=30,count=600,input=uniform:20-300,output=uniform:1-60,prefix=150,"
        "prefixes=12",
        problems);
    ASSERT_TRUE(problems.empty());
    const RequestList list = make_requests({&source, 1});
    std::int64_t hits = 0;
    for (const std::string host : {"", ",host-blocks=1", ",host-blocks=25", ",host-blocks=4000"}) {
      ServingOptions options = options_of(engine + "kv-blocks=60" + host);
      options.replicas.count = 2;
      throw_if_any(check(list, options));
      LinearStepTime cost({.base = 1ms, .token = 10us});
      TimedKvTransport way({.base = 1ms, .token = 2us});
      ServingCosts costs{.replicas = cost};
      costs.host = &way;
      const ServingResult result = simulate_serving(list, options, costs);
      EXPECT_GE(result.hit_tokens, result.host_hit_tokens);
      const std::int64_t blocks = result.replicas.front().host.blocks;
      if (blocks != 1) {
        EXPECT_EQ(result.host_hit_tokens > 0, blocks > 1) << engine;
      }
      EXPECT_GE(result.hit_tokens, hits) << engine << host;
      hits = result.hit_tokens * 9 / 10;
    }
  }
}

// Slow copies: requests that have fetched hold all blocks while one that runs needs another.
TEST(HostMemoryTest, WaitingRequestsGiveBackWhatTheyFetched) {
  std::vector<Problem> problems;
  const RequestSource first = read_request_source(
      "burst:count=150,input=uniform:1-250,output=uniform:1-60,prefix=16,prefixes=4,seed=278",
      problems);
  const RequestSource second = read_request_source(
      "closed:concurrency=3,count=150,input=uniform:1-250,output=uniform:1-60,prefix=16,prefixes=4,"
      "seed=278",
      problems);
  ASSERT_TRUE(problems.empty());
  const std::vector<RequestSource> sources = {first, second};
  const RequestList list = make_requests(sources);
  const ServingOptions options = options_of("sglang,block=8,kv-blocks=60,host-blocks=5,chunk=64");
  LinearStepTime cost({.base = 2ms, .token = 20us});
  TimedKvTransport way({.base = 1s});
  ServingCosts costs{.replicas = cost};
  costs.host = &way;
  const ServingResult result = simulate_serving(list, options, costs);
  EXPECT_GT(result.replicas.front().host.read, 0);
}

TEST(HostMemoryTest, PrefillReplicasKeepBeginningsToo) {
  std::vector<Problem> problems;
  const RequestSource source = read_request_source(
      "poisson:rate=100,count=300,input=200,output=uniform:1-20,prefix=160,prefixes=20", problems);
  const RequestList list = make_requests({&source, 1});
  ServingOptions options = options_of("vllm,kv-blocks=40,host-blocks=500");
  options.decode = read_group("kv-blocks=80,host-blocks=0", "--decode", options.replicas, problems);
  ASSERT_TRUE(problems.empty());
  LinearStepTime cost({.base = 1ms, .token = 10us});
  TimedKvTransport transport({.base = 1ms});
  TimedKvTransport way({.base = 1ms});
  const ServingResult result = simulate_serving(
      list, options,
      {.replicas = cost, .decode = &cost, .transport = &transport, .others = {}, .host = &way});
  EXPECT_GT(result.host_hit_tokens, 160 * 100);
  EXPECT_EQ(result.replicas.at(1).host.blocks, 0);
}

RequestList requests_of_model(std::uint32_t model, std::vector<Problem>& problems) {
  RequestSource source = read_request_source(
      model == 0 ? "closed:concurrency=9,count=80,input=uniform:1-90,output=uniform:1-40"
                 : "poisson:rate=50,count=60,input=40,output=20",
      problems);
  source.model = model;
  return make_requests({&source, 1});
}

// Two models in one run: every request is served as if its model were alone.
TEST(SeveralModelsTest, ModelsHaveReplicasOfTheirOwn) {
  std::vector<Problem> problems;
  ServingOptions options = options_of("vllm,kv-blocks=20");
  options.replicas.count = 2;
  const ModelReplicas other{.replicas = read_engine("orca,sequences=3,kv-blocks=700", problems)};
  options.others.push_back(other);
  RequestList both = requests_of_model(0, problems);
  const RequestList second = requests_of_model(1, problems);
  ASSERT_TRUE(problems.empty());
  const auto first_count = static_cast<std::uint32_t>(both.requests.size());
  both.tenants.push_back(second.tenants.front());
  for (Request request : second.requests) {
    request.tenant = TenantId(1);
    both.requests.push_back(request);
  }
  EXPECT_TRUE(check(both, options).empty());
  LinearStepTime fast({.base = 3ms, .token = 7us});
  LinearStepTime slow({.base = 11ms});
  const ServingResult result =
      simulate_serving(both, options, {.replicas = fast, .others = {{.replicas = &slow}}});

  options.others.clear();
  const ServingResult alone =
      simulate_serving(requests_of_model(0, problems), options, {.replicas = fast});
  ServingOptions other_options;
  other_options.replicas = other.replicas;
  RequestList own = second;
  own.tenants.front().model = 0;
  const ServingResult other_alone = simulate_serving(own, other_options, {.replicas = slow});
  for (std::uint32_t i = 0; i < both.requests.size(); ++i) {
    const bool is_first = i < first_count;
    const RequestRecord& record = result.requests[RequestId(i)];
    const RequestRecord& expected =
        is_first ? alone.requests[RequestId(i)] : other_alone.requests[RequestId(i - first_count)];
    EXPECT_EQ(record.first_token, expected.first_token);
    EXPECT_EQ(record.last_token, expected.last_token);
    EXPECT_EQ(record.preemptions, expected.preemptions);
    EXPECT_EQ(record.replica < 2, is_first);
  }
  EXPECT_EQ(result.replicas.at(2).model, 1U);
  EXPECT_EQ(result.steps, alone.steps + other_alone.steps);
  EXPECT_GT(result.preemptions, 0);
}

TEST(SeveralModelsTest, ARequestIsCheckedAgainstItsOwnModel) {
  std::vector<Problem> problems;
  ServingOptions options = options_of("vllm");
  options.others.push_back({.replicas = read_engine("vllm,kv-blocks=2", problems)});
  RequestList list = requests_of({{0ms, 50, 2}, {0ms, 50, 2}});
  list.tenants.push_back({.name = "small", .model = 1});
  list.requests[1].tenant = TenantId(1);
  const std::vector<Problem> found = check(list, options);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().field, "requests[1]");
}

}  // namespace
}  // namespace stepsim
