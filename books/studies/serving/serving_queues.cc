// S43 and S44: requests in queues, served by the engine of `stepsim serve`. Where a row says what a
// step takes it is the book's time; passes of the model are in rows of their own.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "books/formulas/sources.h"
#include "books/laboratory/random_numbers.h"
#include "books/laboratory/study_groups.h"
#include "books/studies/serving/book_serving.h"
#include "proto/load_experiment.h"
#include "serving/serving_metrics.h"

namespace stepsim {
namespace {

// ---- S43 ----

// 16 v5e prefill 8,192 tokens of Llama-3 70B in 0.91 s; a decode server has 32 slots and makes 512
// tokens in each, one every 19 ms.
constexpr double kPrefillTime = 0.91;  // s
constexpr double kStepTime = 0.019;    // s
constexpr std::int32_t kPromptTokens = 8192;
constexpr std::int32_t kMeanAnswer = 512;  // tokens
constexpr std::int64_t kSlots = 32;
constexpr std::int64_t kServers = 3;

LinearStepTime every(double seconds) {
  return LinearStepTime({.base = duration_from_seconds(seconds)});
}

struct Farm {
  std::int64_t prefill_servers = kServers;
  std::int64_t decode_servers = 1;
  RouterPolicy router = RouterPolicy::kLeastTokens;
  // Caches that wait for a slot on the prefill server, beside the one that it makes.
  std::int64_t stored = 1 << 20;
};

// A prefill server computes one prompt at a time. The cache moves in no time.
ServingResult serve_apart(const RequestList& list, const Farm& farm) {
  constexpr std::int64_t kSlot = kPromptTokens + 16 * kMeanAnswer;  // a cache is a block
  ServingOptions options;
  options.router = farm.router;
  options.replicas = {.options = book_engine(1, kPromptTokens), .count = farm.prefill_servers};
  options.replicas.options.cache.block = kSlot;
  options.replicas.options.cache.kv_blocks = 1 + farm.stored;
  options.decode =
      ReplicaGroup{.options = book_engine(kSlots, kPromptTokens), .count = farm.decode_servers};
  options.decode->options.cache.block = kSlot;
  options.decode->options.cache.kv_blocks = kSlots;
  LinearStepTime prefill = every(kPrefillTime);
  LinearStepTime decode = every(kStepTime);
  TimedKvTransport transport({});
  return simulate_serving(list, options,
                          {.replicas = prefill, .decode = &decode, .transport = &transport});
}

double served_per_second(const RequestList& list, const Farm& farm) {
  ServingResult result = serve_apart(list, farm);
  return requests_per_second(list, result);
}

// Poisson arrivals, of prompts only: an answer of one token ends with the prefill.
double mean_first_token(RouterPolicy router) {
  constexpr std::int64_t kRequests = 1'000'000;
  constexpr double kRate = 3.0;
  RequestList list = requests_at_once(kRequests, kPromptTokens, 1);
  RandomNumbers random(2024);
  double at = 0;
  for (Request& request : list.requests) {
    at += random.exponential() / kRate;
    request.arrival = Time{duration_from_seconds(at)};
  }
  ServingOptions options;
  options.router = router;
  options.replicas = {.options = book_engine(1, kPromptTokens), .count = kServers};
  LinearStepTime prefill = every(kPrefillTime);
  ServingResult result = simulate_serving(list, options, {.replicas = prefill});
  return to_seconds(metrics_of(list, result, {}).ttft.mean);
}

double random_lengths() {
  RequestList list = requests_at_once(20'000, kPromptTokens, kMeanAnswer);
  RandomNumbers random(2024);
  for (Request& request : list.requests) {
    const double tokens = std::min(random.geometric(kMeanAnswer), 16.0 * kMeanAnswer);
    request.output_tokens = static_cast<std::int32_t>(tokens);
  }
  return served_per_second(list, {.stored = 0});
}

// One server prefills and decodes. 32 requests are in the system; the first answers are a 32nd, two
// 32nds, ... of the others, so that the slots are spread evenly over the answers. A prompt costs
// what is left of 0.91 s beside its step.
double interleaved_p99() {
  constexpr std::int64_t kRequests = 1200;
  RequestList list = in_a_loop(requests_at_once(kRequests, kPromptTokens, kMeanAnswer), kSlots);
  for (std::int64_t slot = 0; slot < kSlots; ++slot) {
    list.requests[static_cast<std::size_t>(slot)].output_tokens =
        static_cast<std::int32_t>((slot + 1) * kMeanAnswer / kSlots);
  }
  ServingOptions options;
  options.replicas.options = book_engine(kSlots, kPromptTokens);
  LinearStepTime step({.base = duration_from_seconds(kStepTime),
                       .token = duration_from_seconds(kPrefillTime / kPromptTokens)});
  ServingResult result = simulate_serving(list, options, {.replicas = step});
  return to_seconds(metrics_of(list, result, {}).inter_token.p99);
}

// ---- passes of Llama-3 70B, weights and caches in int8, on a v5e 4x4 ----

const char* const kInt8 = "dtype=bf16,weight_dtype=int8,cache_dtype=int8,tp=16";

double prefill_pass(const Laboratory& laboratory, bool has_links) {
  constexpr double kMfu = 0.4;
  return pass_seconds(
      laboratory, load_model("llama3-70b"),
      std::string("inference=prefill,batch=1,sequence=8192,") + kInt8,
      book_v5e({.sizes = {4, 4}, .flops = kMfu * kSliceFlops, .has_links = has_links}));
}

double full_memory_pass(const Laboratory& laboratory, bool has_links) {
  return pass_seconds(
      laboratory, load_model("llama3-70b"),
      std::string("inference=decode,batch=128,context=8192,cache_split=requests,") + kInt8,
      book_v5e({.sizes = {4, 4}, .has_links = has_links}));
}

void add_pass_rows(std::vector<StudyRow>& rows) {
  const double book = predict(
      "I5", {{"P", 70e9}, {"p", kPromptTokens}, {"Nc", 16}, {"C", kSliceFlops}, {"MFU", 0.4}});
  // Matmuls have 68.45e9 of the parameters (the head is read for one token): 0.890 s. Half of the
  // pairs of 8,192 x 8,192 tokens, 4 x 8,192 FLOPs each in 80 layers: 0.070 s. Norms and additions
  // run whole on every chip: 10 vectors of 8,192 values a layer and token, 107 GB, 0.131 s;
  // rotation and activation of the chip's part, 0.01 s: 1.10 s.
  rows.push_back(
      {.id = "prefill",
       .formula = "I5",
       .regime = "a pass of 8,192 tokens on chips of 40 % of the peak, no communication",
       .predicted = book,
       .expected = {0.19, 0.25},
       .why = "attention's scores, and norms and additions that are not divided",
       .simulate = [](const Laboratory& laboratory) { return prefill_pass(laboratory, false); }});
  // 161 all-reduces of 8,192 x 8,192 x 2 bytes = 134 MB. 4x4 does not wrap; with both axes busy a
  // line carries 5/8 of the array: 1.86 ms, 0.300 s in all, a third of 0.91 s.
  rows.push_back(
      {.id = "prefill-with-ici",
       .formula = "I5",
       .regime = "the same with the all-reduces of 16 ways of tensor parallelism",
       .predicted = book,
       .expected = {0.19 + 0.32, 0.25 + 0.35},
       .why = "161 all-reduces of 134 MB on a mesh that does not wrap: prefill is bound "
              "by ICI beyond 13 ways (E6)",
       .simulate = [](const Laboratory& laboratory) { return prefill_pass(laboratory, true); }});
  // Stepped, the phases of an all-reduce follow each other: up to twice as long.
  rows.back().expected_packets = DifferenceRange{0.19 + 0.32, 0.25 + 0.68};
  // 68.5 GB of weights, 2.1 GB of the head, 1.3 GB of projections that two chips have, and 128
  // caches of 8,192 x 163,840 bytes = 171.8 GB: 243.7 GB of 256, 18.6 ms. The book reads all of 16
  // GB a chip. Activations of 128 requests go through the memory of every chip, 14 vectors of 8,192
  // values a layer, 2.9 ms, and those of its part, 0.3 ms.
  rows.push_back({.id = "decode",
                  .formula = "I10",
                  .regime = "a pass of 128 caches on 16 chips, no communication",
                  .predicted = predict("I10", {{"Q", kSliceCapacity}, {"W", kSliceMemory}}),
                  .expected = {0.1, 0.14},
                  .why = "94 % of the memory is read; activations, which are not divided, are 16 % "
                         "more",
                  .simulate = [](const Laboratory& laboratory) {
                    return full_memory_pass(laboratory, false);
                  }});
}

std::vector<StudyRow> balance_rows() {
  std::vector<StudyRow> rows;
  // Prefill: 3 / 0.91 = 3.297 a second; decode 32 / (512 x 0.019) = 3.289: the smaller counts.
  const double throughput =
      predict("I8.rate", {{"B", kSlots}, {"T", kStepTime}, {"G", kMeanAnswer}, {"Nc", 1}});
  // The first token comes from the prefill, so a slot is taken for 511 steps: 3.296 a second, a
  // shade below the three prefill servers, and up to a step is lost until the next begins: 0.1 %.
  // 20,000 requests at once take 6,080 s. The first 0.91 s and the last answers (9.7 s) do not run
  // at full rate.
  rows.push_back(
      {.id = "saturated",
       .formula = "I7",
       .regime = "3 prefill servers, 1 decode server, all requests there at once",
       .predicted = throughput,
       .unit = "requests/s",
       .expected = {-0.004, 0.003},
       .tolerance = 0.02,
       .why = "with equal lengths both are busy all the time: 3 to 1 is right, not 1 to 3",
       .simulate = [](const Laboratory&) {
         return served_per_second(requests_at_once(20'000, kPromptTokens, kMeanAnswer), {});
       }});
  // The notes have the ratio the wrong way round. Prefill binds at 1 / 0.91 = 1.099 per second:
  // 11.1 % of the 3 x 3.289 that three decode servers could do.
  rows.push_back({.id = "one-to-three",
                  .formula = "I7",
                  .regime = "1 prefill server, 3 decode servers, as the notes conclude",
                  .predicted = 3 * throughput,
                  .unit = "requests/s",
                  .expected = {1 / kPrefillTime / (3 * throughput) - 1 - 0.002,
                               1 / kPrefillTime / (3 * throughput) - 1 + 0.002},
                  .tolerance = 0.02,
                  .why = "the prefill server binds; 89 % of the decode slots are empty",
                  .simulate = [](const Laboratory&) {
                    return served_per_second(requests_at_once(20'000, kPromptTokens, kMeanAnswer),
                                             {.prefill_servers = 1, .decode_servers = 3});
                  }});
  // Poisson arrivals at 3.0 per second load the prefill to 91 %. One queue for three servers
  // (M/D/3): Erlang C 0.835 x 0.91 / (3 x 0.09) = 2.81 s in M/M/3, half of that with equal times,
  // 1 % more after Cosmetatos (1975): 1.42 s on top of 0.91, +156 %. A router gives each request to
  // a server when it comes. The shortest queue of three is a little worse than one queue: no
  // request waits behind another that a free server could take, but ties of whole prompts are
  // broken without knowing how much is left of each, which costs up to half a prompt.
  rows.push_back(
      {.id = "poisson",
       .formula = "I5",
       .regime = "Poisson arrivals at 3.0 a second, router least-tokens: time to the "
                 "first token",
       .predicted = kPrefillTime,
       .expected = {1.5, 2.1},
       .tolerance = 0.02,
       .why = "requests queue for a prefill server at 91 % load",
       .simulate = [](const Laboratory&) { return mean_first_token(RouterPolicy::kLeastTokens); }});
  // In turn, a server gets every third request: gamma distributed arrivals of shape 3, coefficient
  // of variation 1/3. Allen-Cunneen: 0.91 / (2 x 0.09) x 1/3 x 0.91 s = 1.53 s, an upper bound's
  // correction (Kraemer and Langenbach-Belz) takes exp(-2 x 0.09 x (2/3)^2 / (3 x 0.91 / 3)) =
  // 0.916 of it: 1.40 to 1.53 s on top of 0.91: +154 to +168 %.
  rows.push_back(
      {.id = "poisson-in-turn",
       .formula = "I5",
       .regime = "the same, router round-robin",
       .predicted = kPrefillTime,
       .expected = {1.5, 1.75},
       .tolerance = 0.02,
       .why = "each server gets every third request, which evens arrivals out",
       .simulate = [](const Laboratory&) { return mean_first_token(RouterPolicy::kRoundRobin); }});
  // Geometric lengths: slots end at random. Between the servers nothing is stored except what the
  // three prefill servers hold. The offered load is 32.1 erlang on 32 slots. Poisson arrivals
  // without waiting would lose 13.5 % (Erlang B). Regular arrivals vary half as much: Erlang B at
  // twice the size, 9.9 % (Hayward). Three places to wait take 3 / (3 + 5) of that away: 6.2 %.
  // This is rough: +-2.5.
  rows.push_back({.id = "random-lengths",
                  .formula = "I7",
                  .regime = "geometric answer lengths, no store between prefill and decode",
                  .predicted = throughput,
                  .unit = "requests/s",
                  .expected = {-0.087, -0.037},
                  .tolerance = 0.02,
                  .why = "slots that end at random stand empty until a prefill ends",
                  .simulate = [](const Laboratory&) { return random_lengths(); }});
  // A slot ends every 512 / 32 = 16 steps, so 6 % of the gaps hold a prefill: the 99th percentile
  // is 0.019 + 0.91 s and the tokens of 31 answers, 3.4 ms: 49.1 times a step.
  const double stalled = (kPrefillTime + 31 * kPrefillTime / kPromptTokens) / kStepTime;
  rows.push_back(
      {.id = "interleaved",
       .formula = "I10",
       .regime = "one server does prefill and decoding: 99th percentile of the time between tokens",
       .predicted = kStepTime,
       .expected = {stalled - 0.02, stalled + 0.02},
       .tolerance = 0.02,
       .why = "each prefill holds up 31 other answers for 48 steps",
       .simulate = [](const Laboratory&) { return interleaved_p99(); }});
  add_pass_rows(rows);
  return rows;
}

// ---- S44 ----

constexpr std::int64_t kSequences = 32;
constexpr std::int32_t kPrompt = 8192;
constexpr std::int32_t kAnswer = 4096;

struct Evictions {
  double mean = 0;       // tokens a step
  double deviation = 0;  // deviation of a step from the mean
};

// A closed loop of 32 requests whose first answers end at random steps. A step takes what it takes:
// it is counted, not timed. A record has what is held once its step is scheduled, the slots of
// its own tokens among them. So, with blocks of one token, a step frees what was held in it and
// what the next one computes, less what is held in that.
Evictions evictions() {
  constexpr std::int64_t kLoops = 12;
  RandomNumbers random(7);
  RequestList list = in_a_loop(requests_at_once(kLoops * kSequences, kPrompt, kAnswer), kSequences);
  for (std::int64_t i = 0; i < kSequences; ++i) {
    list.requests[static_cast<std::size_t>(i)].output_tokens =
        1 + static_cast<std::int32_t>(random.uniform() * kAnswer);
  }
  ServingOptions options;
  options.replicas.options = book_engine(kSequences, kSequences * kPrompt);
  options.records_steps = true;
  LinearStepTime step = every(kStepTime);
  const ServingResult result = simulate_serving(list, options, {.replicas = step});
  // Whole periods, behind the first and before the system runs empty.
  constexpr std::size_t kPeriods = 9;
  std::vector<double> freed;
  for (std::size_t i = kAnswer; i < (1 + kPeriods) * kAnswer; ++i) {
    const StepRecord& now = result.step_records[i];
    const StepRecord& next = result.step_records[i + 1];
    const std::int64_t gone =
        now.load.kv_blocks - next.load.kv_blocks + next.chunk_tokens + next.decodes;
    freed.push_back(static_cast<double>(gone));
  }
  Evictions found;
  const auto steps = static_cast<double>(freed.size());
  found.mean = std::accumulate(freed.begin(), freed.end(), 0.0) / steps;
  for (const double tokens : freed) {
    found.deviation += (tokens - found.mean) * (tokens - found.mean) / steps;
  }
  found.deviation = std::sqrt(found.deviation);
  return found;
}

std::vector<StudyRow> eviction_rows() {
  const double formula = predict("I6", {{"B", kSequences}, {"p", kPrompt}, {"G", kAnswer}});
  // The last token of an answer needs no slot: 32 caches of 12,287 tokens in 4,096 steps, 95.99 a
  // step, exactly over whole periods. A step frees a whole cache with probability 32/4096 = 1/128:
  // sqrt(1/128 - 1/128^2) x 12,287 = 1,082 tokens of deviation. It is larger if two sequences began
  // at one step (a pair of 32 in 4,096 steps: 12 % likely, then sqrt(34/32) - 1 = 3 % more).
  return {{.id = "mean",
           .formula = "I6",
           .regime = "32 requests of 8,192 + 4,096 tokens in a closed loop: freed a step, mean",
           .predicted = formula,
           .unit = "tokens",
           .expected = {-1.0 / 12288 - 1e-9, -1.0 / 12288 + 1e-9},
           .why = "what comes in goes out; the last token of an answer takes no slot",
           .simulate = [](const Laboratory&) { return evictions().mean; }},
          {.id = "deviation",
           .formula = "I6",
           .regime = "the same: standard deviation of a step",
           .predicted = formula,
           .unit = "tokens",
           .expected = {1081.9 / 96 - 1 - 0.01, 1.03 * 1081.9 / 96 - 1 + 0.01},
           .why = "a whole cache of 12,287 tokens goes at once, in one of 128 steps",
           .simulate = [](const Laboratory&) { return evictions().deviation; }}};
}

}  // namespace

std::vector<Study> serving_queue_studies() {
  return {{.id = "S43",
           .source = kBookInference,
           .title = "Balance of prefill and decode servers",
           .claim = "three prefill servers keep one decode server busy: 3.29 answers a second",
           .rows = balance_rows,
           .finding =
               "Requests are served by the engine of stepsim serve: a router in front of three "
               "queues in place of one queue for three servers, vLLM's rules behind it. With the "
               "book's times for prefill and step its balance holds. Passes of the model take "
               "longer: attention's scores, norms that tensor parallelism does not divide, and its "
               "all-reduces on a mesh that does not wrap make a prefill of 1.4 s, so it takes five "
               "prefill servers rather than three."},
          {.id = "S44",
           .source = kBookInference,
           .title = "Evictions from the cache",
           .claim = "in steady state a step frees B (P + G) / G = 96 cache entries",
           .rows = eviction_rows}};
}

}  // namespace stepsim
