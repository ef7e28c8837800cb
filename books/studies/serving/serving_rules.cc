// S53: what the rules of an engine are worth: continuous batches, paged caches, prefixes and
// drafts.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "books/formulas/sources.h"
#include "books/laboratory/random_numbers.h"
#include "books/laboratory/study_groups.h"
#include "books/studies/serving/book_serving.h"
#include "proto/load_experiment.h"

namespace stepsim {
namespace {

constexpr double kRuleStep = 0.019;  // s
constexpr std::int64_t kRunning = 32;

LinearStepTime rule_step() {
  return LinearStepTime({.base = duration_from_seconds(kRuleStep)});
}

// ---- continuous and static batches ----

// Answers of 1 to 1,023 tokens, mean 512, all requests there at the start.
double uneven_answers(std::string_view engine) {
  constexpr std::int64_t kRequests = 200 * kRunning;
  constexpr double kMost = 1023;
  RequestList list = requests_at_once(kRequests, 1, 1);
  RandomNumbers random(5);
  for (Request& request : list.requests) {
    request.output_tokens = 1 + static_cast<std::int32_t>(random.uniform() * kMost);
  }
  ServingOptions options;
  options.replicas.engine = find_engine(engine);
  options.replicas.options = book_engine(kRunning, kRunning);
  LinearStepTime step = rule_step();
  ServingResult result = simulate_serving(list, options, {.replicas = step});
  return requests_per_second(list, result);
}

void add_batches(std::vector<StudyRow>& rows) {
  constexpr double kMean = 512;
  const double full =
      predict("I8.rate", {{"B", kRunning}, {"T", kRuleStep}, {"G", kMean}, {"Nc", 1}});
  // 200 rounds: all but the last have all slots full. The mean of 6,400 lengths is good to 0.7 %,
  // and the last answers take up to 1,023 steps of 102,000.
  rows.push_back(
      {.id = "continuous",
       .formula = "I8.rate",
       .regime = "vllm: answers of 1 to 1,023 tokens, 32 at a time, each slot filled again",
       .predicted = full,
       .unit = "requests/s",
       .expected = {-0.025, 0.015},
       .tolerance = 0.025,
       .why = "a slot that ends is filled in the next step",
       .simulate = [](const Laboratory&) { return uneven_answers("vllm"); }});
  // The longest of 32 answers has 1,023 x 32/33 = 992 tokens in the mean, where the mean has 512.
  rows.push_back({.id = "static",
                  .formula = "I8.rate",
                  .regime = "static: the next batch begins when the longest answer is complete",
                  .predicted = full,
                  .unit = "requests/s",
                  .expected = {kMean / 992 - 1 - 0.012, kMean / 992 - 1 + 0.012},
                  .why = "a batch takes as long as its longest answer, twice the mean",
                  .simulate = [](const Laboratory&) { return uneven_answers("static"); }});
}

// ---- paged caches ----

constexpr std::int64_t kLongest = 8192;
constexpr double kTokenOf70b = 327680;    // B
constexpr double kWeightsRead = 139.0e9;  // B
constexpr double kChipsOfSlice = 16;
constexpr std::int32_t kFewTokens = 65;

RequestList ragged() {
  RequestList list = requests_at_once(kRunning, 1, kFewTokens);
  RandomNumbers random(11);
  for (Request& request : list.requests) {
    request.input_tokens = 1 + static_cast<std::int32_t>(
                                   random.uniform() * static_cast<double>(kLongest - kFewTokens));
  }
  return list;
}

double tokens_in_caches(const RequestList& list) {
  double sum = 0;
  for (const Request& request : list.requests) sum += request.input_tokens + kFewTokens / 2;
  return sum;
}

// Prompts come computed. Returns the mean time between tokens on 16 v5e.
double ragged_step(const Laboratory& laboratory) {
  const RequestList list = ragged();
  ServingResult result =
      serve_with_passes(laboratory, list, load_model("llama3-70b"),
                        "inference=decode,context=2,batch=1,tp=16,cache_split=requests",
                        {.sizes = {4, 4}, .has_links = false}, book_engine(kRunning, kLongest));
  return to_seconds(metrics_of(list, result, {}).tpot.mean);
}

double blocks_of_16() {
  const RequestList list = ragged();
  ServingOptions options;
  options.replicas.options = book_engine(kRunning, kRunning * kLongest);
  options.replicas.options.cache.block = 16;
  LinearStepTime step = rule_step();
  const ServingResult result = simulate_serving(list, options, {.replicas = step});
  return 16.0 * static_cast<double>(result.peak_kv_blocks);
}

void add_pages(std::vector<StudyRow>& rows) {
  const auto time = [](double tokens) {
    return predict("I2", {{"B", 1},
                          {"kv", tokens * kTokenOf70b},
                          {"V", kWeightsRead},
                          {"Nc", kChipsOfSlice},
                          {"W", kSliceMemory}});
  };
  const double padded = time(static_cast<double>(kRunning * kLongest));
  const double exact = time(tokens_in_caches(ragged()));
  // Activations of 32 requests, and key projections that two chips have each, are 4 to 7 %.
  rows.push_back({.id = "ragged-reads",
                  .formula = "I2",
                  .regime = "32 caches of 1 to 8,127 tokens are read as long as they are, served",
                  .predicted = padded,
                  .expected = {exact * 1.04 / padded - 1, exact * 1.08 / padded - 1},
                  .why = "padded to 8,192, half of what is read would be padding",
                  .simulate = ragged_step});
  double held = 0;
  for (const Request& request : ragged().requests) held += request.input_tokens + kFewTokens - 1;
  // Half a block of each of 32 requests is empty, 240 tokens.
  rows.push_back({.id = "paged-room",
                  .formula = "D9.sequence",
                  .regime = "tokens of room in blocks of 16 for all 32 answers complete, served",
                  .predicted = static_cast<double>(kRunning * kLongest),
                  .unit = "tokens",
                  .expected = {(held + 150) / (kRunning * kLongest) - 1,
                               (held + 330) / (kRunning * kLongest) - 1},
                  .why = "blocks are taken as tokens come: 0.2 % is lost, not half",
                  .simulate = [](const Laboratory&) { return blocks_of_16(); }});
}

// ---- prefixes ----

constexpr std::int32_t kPrefix = 2048;
constexpr std::int32_t kPrefixes = 32;
constexpr std::int64_t kRoom = 8;  // prefixes that fit
constexpr std::int64_t kAsked = 20'000;

// Requests of one of 32 beginnings and a token of their own, far apart in time unless `every` is
// short.
RequestList random_prefixes(double every) {
  RequestList list = requests_at_once(kAsked, kPrefix + 1, 1);
  RandomNumbers random(3);
  double at = 0;
  for (Request& request : list.requests) {
    at += every * random.exponential();
    request.arrival = Time{duration_from_seconds(at)};
    request.prefix_tokens = kPrefix;
    request.prefix = PrefixId(static_cast<std::uint32_t>(random.uniform() * kPrefixes));
  }
  return list;
}

ReplicaGroup prefix_replicas(std::int64_t count) {
  ReplicaGroup group{.options = book_engine(1, kPrefix + 1), .count = count};
  group.options.cache.prefix_cache = true;
  group.options.cache.block = 16;
  group.options.cache.kv_blocks = kRoom * (kPrefix / 16 + 1);
  return group;
}

// A prompt takes as long as the tokens that the cache does not have.
LinearStepTime prefix_step() {
  return LinearStepTime(
      {.base = duration_from_seconds(1e-3), .token = duration_from_seconds(1e-4)});
}

// Returns the share of prefix tokens that are found.
double prefix_hits(std::int64_t replicas, RouterPolicy router, double every) {
  const RequestList list = random_prefixes(every);
  ServingOptions options;
  options.router = router;
  options.replicas = prefix_replicas(replicas);
  LinearStepTime step = prefix_step();
  const ServingResult result = simulate_serving(list, options, {.replicas = step});
  return static_cast<double>(result.hit_tokens) / static_cast<double>(kAsked * kPrefix);
}

void add_prefixes(std::vector<StudyRow>& rows) {
  const double one = predict("I15.hits", {{"c", kRoom}, {"n", kPrefixes}});
  // 20,000 requests: 1.2 %. What is left of evicted prefixes and the requests' own blocks change
  // the room by a part in 129.
  rows.push_back({.id = "prefix-hits",
                  .formula = "I15.hits",
                  .regime =
                      "32 beginnings as likely each, room for 8: tokens found, least recently "
                      "used go first",
                  .predicted = one,
                  .unit = "",
                  .expected = {-0.05, 0.05},
                  .tolerance = 0.05,
                  .why = "each of the 8 last used is there",
                  .simulate = [](const Laboratory&) {
                    return prefix_hits(1, RouterPolicy::kRoundRobin, 1.0);
                  }});
  rows.push_back({.id = "prefix-hits-in-turn",
                  .formula = "I15.hits",
                  .regime = "4 replicas in turn",
                  .predicted = one,
                  .unit = "",
                  .expected = {-0.05, 0.05},
                  .tolerance = 0.05,
                  .why = "each replica has the same prefixes: room for 32 helps nobody",
                  .simulate = [](const Laboratory&) {
                    return prefix_hits(4, RouterPolicy::kRoundRobin, 0.1);
                  }});
  rows.push_back({.id = "affinity",
                  .formula = "I15.hits",
                  .regime = "4 replicas, requests go where their prefix is (prefix-aware)",
                  .predicted = predict("I15.hits", {{"c", 4 * kRoom}, {"n", kPrefixes}}),
                  .unit = "",
                  .expected = {-0.3, 0},
                  .tolerance = 0.1,
                  .why = "the caches of four replicas are as one, less what a full queue sends "
                         "elsewhere",
                  .simulate = [](const Laboratory&) {
                    return prefix_hits(4, RouterPolicy::kPrefixAware, 0.1);
                  }});
}

// ---- drafts ----

double tokens_of_pass(std::int64_t drafts, double acceptance) {
  constexpr std::int32_t kTokens = 40'000;
  const RequestList list = requests_at_once(1, 1, kTokens);
  ServingOptions options;
  options.replicas.options = book_engine(1, 1 + drafts);
  options.replicas.options.speculation.drafts = drafts;
  options.replicas.options.speculation.acceptance = acceptance;
  LinearStepTime step = rule_step();
  const ServingResult result = simulate_serving(list, options, {.replicas = step});
  return static_cast<double>(kTokens) / static_cast<double>(result.steps);
}

void add_drafts(std::vector<StudyRow>& rows) {
  // 40,000 tokens: the mean of 10,000 passes is good to 0.5 %.
  for (const auto& [id, drafts, acceptance] :
       {std::tuple{"drafts-80", 4, 0.8}, std::tuple{"drafts-90", 4, 0.9}}) {
    rows.push_back({.id = id,
                    .formula = "I15.tokens",
                    .regime = "tokens of a pass with 4 drafts, each right with probability " +
                              std::string(acceptance == 0.8 ? "0.8" : "0.9"),
                    .predicted = predict("I15.tokens", {{"a", acceptance}, {"k", drafts}}),
                    .unit = "tokens",
                    .expected = {-0.02, 0.02},
                    .tolerance = 0.02,
                    .why = "drafts count up to the first that is wrong, and the pass adds a token",
                    .simulate = [drafts = drafts, acceptance = acceptance](const Laboratory&) {
                      return tokens_of_pass(drafts, acceptance);
                    }});
  }
}

// ---- the host's memory ----

// Requests of one of 32 beginnings, with room for 8 in the cache and for all of them in the host's
// memory. Returns the share of prefix tokens that need not be computed.
double found_with_host() {
  const RequestList list = random_prefixes(1.0);
  ServingOptions options;
  options.replicas = prefix_replicas(1);
  options.replicas.options.cache.host_blocks = (kPrefixes + 1) * (kPrefix / 16 + 1);
  LinearStepTime step = prefix_step();
  TimedKvTransport way({.base = std::chrono::milliseconds(1)});
  ServingCosts costs{.replicas = step};
  costs.host = &way;
  const ServingResult result = simulate_serving(list, options, costs);
  return static_cast<double>(result.hit_tokens) / static_cast<double>(kAsked * kPrefix);
}

void add_host(std::vector<StudyRow>& rows) {
  // The first request of each of 32 beginnings finds nothing: 0.2 % of 20,000.
  rows.push_back({.id = "host-memory",
                  .formula = "I15.hits",
                  .regime = "32 beginnings, room for 8, and for all in the host's memory",
                  .predicted = predict("I15.hits", {{"c", kPrefixes}, {"n", kPrefixes}}),
                  .unit = "",
                  .expected = {-0.004, 0},
                  .why = "what the cache loses comes back from the host; first requests compute",
                  .simulate = [](const Laboratory&) { return found_with_host(); }});
}

// ---- an orchestrator with queues ----

// A prompt of 0.91 s, computed alone, or a step of all slots.
class PromptOrStep final : public StepCost {
 public:
  static constexpr double kPrompt = 0.91;  // s
  Duration time_of(const Batch& batch) override {
    return duration_from_seconds(batch.decodes > 0 ? kRuleStep : kPrompt);
  }
};

constexpr std::int32_t kOrchestrated = 513;  // tokens of an answer, the first from the prefill

double orchestrated() {
  constexpr std::int64_t kRequests = 100 * kRunning;
  const RequestList list = requests_at_once(kRequests, 8192, kOrchestrated);
  ServingOptions options;
  options.replicas = replica_of("jetstream");
  options.replicas.options.batching.sequences = kRunning;
  options.replicas.options.batching.budget = 8192;
  PromptOrStep step;
  ServingResult result = simulate_serving(list, options, {.replicas = step});
  return requests_per_second(list, result);
}

void add_orchestrator(std::vector<StudyRow>& rows) {
  // A request costs its prefill and a 32nd of 512 steps: 0.91 + 0.304 s. The last answers (9.7 s of
  // 3,885) run without others behind them.
  const double of_request = PromptOrStep::kPrompt + 512 * kRuleStep / kRunning;
  rows.push_back(
      {.id = "orchestrator",
       .formula = "I8.rate",
       .regime = "jetstream: prompts of 0.91 s alone, caches that wait for one of 32 slots",
       .predicted = predict(
           "I8.rate", {{"B", kRunning}, {"T", of_request * kRunning / 512}, {"G", 512}, {"Nc", 1}}),
       .unit = "requests/s",
       .expected = {-0.02, 0.01},
       .why = "a cache waits for every slot that ends: none stands empty",
       .simulate = [](const Laboratory&) { return orchestrated(); }});
}

std::vector<StudyRow> rule_rows() {
  std::vector<StudyRow> rows;
  add_batches(rows);
  add_pages(rows);
  add_prefixes(rows);
  add_drafts(rows);
  add_host(rows);
  add_orchestrator(rows);
  return rows;
}

}  // namespace

std::vector<Study> serving_rule_studies() {
  return {{.id = "S53",
           .source = kBookInference,
           .title = "What the rules of a serving engine are worth",
           .claim = "slots that are filled at once, caches in pages, kept prefixes and 3 to 4 "
                    "tokens of speculation a pass make serving cheap",
           .rows = rule_rows}};
}

}  // namespace stepsim
