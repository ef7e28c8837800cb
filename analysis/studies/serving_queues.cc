// S43 and S44: requests in queues, on the simulator's clock. No network and no chips.

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

#include "analysis/formulas/sources.h"
#include "analysis/studies/random_numbers.h"
#include "analysis/studies/study_groups.h"
#include "sim/engine/event_queue.h"

namespace stepsim {
namespace {

// ---- S43 ----

// 16 v5e prefill 8,192 tokens of Llama-3 70B in 0.91 s; a decode server has 32 slots and makes 512
// tokens in each, one every 19 ms.
constexpr double kPrefill = 0.91;    // s
constexpr double kStep = 0.019;      // s
constexpr double kMeanAnswer = 512;  // mean tokens per answer
constexpr std::uint32_t kSlots = 32;
constexpr std::uint32_t kServers = 3;

struct Serving {
  std::uint32_t requests = 0;
  std::uint32_t prefill_servers = kServers;
  std::uint32_t slots = kSlots;   // slots of all decode servers
  double rate = 0;                // rate of Poisson arrivals; 0: all requests arrive at the start
  bool random_lengths = false;    // geometric, mean kMeanAnswer
  bool waits_in_prefill = false;  // a prefill server holds its result until a slot is free
};

struct Served {
  double seconds = 0;        // until the last answer
  double first_token_s = 0;  // mean time from arrival to the end of the prefill
};

double requests_per_second(const Serving& serving, const Served& served) {
  return serving.requests / served.seconds;
}

// Requests queue for a prefill server, then for a slot of the decoder.
class Servers {
 public:
  explicit Servers(const Serving& serving)
      : serving_(serving), free_servers_(serving.prefill_servers), free_slots_(serving.slots) {
    arrivals_.resize(serving.requests);
  }

  Served run() {
    double at = 0;
    for (std::uint32_t request = 0; request < serving_.requests; ++request) {
      if (serving_.rate > 0) at += random_.exponential() / serving_.rate;
      arrivals_[request] = at;
      queue_.schedule(Time{duration_from_seconds(at)}, Event(kArrives, request));
    }
    while (!queue_.empty()) {
      const Event event = queue_.pop();
      const double now = to_seconds(queue_.now().since_start);
      if (event.kind() == kArrives) {
        waiting_.push_back(event.index());
      } else if (event.kind() == kPrefilled) {
        first_token_ += now - arrivals_[event.index()];
        prefilled_.push_back(event.index());
        if (!serving_.waits_in_prefill) ++free_servers_;
      } else {
        ++free_slots_;
      }
      start_what_can(now);
    }
    return {.seconds = to_seconds(queue_.now().since_start),
            .first_token_s = first_token_ / serving_.requests};
  }

 private:
  enum Kind : std::uint32_t { kArrives, kPrefilled, kAnswered };

  void start_what_can(double now) {
    while (free_slots_ > 0 && !prefilled_.empty()) {
      --free_slots_;
      if (serving_.waits_in_prefill) ++free_servers_;
      const double tokens = serving_.random_lengths ? random_.geometric(kMeanAnswer) : kMeanAnswer;
      schedule(now + tokens * kStep, Event(kAnswered, prefilled_.front()));
      prefilled_.pop_front();
    }
    while (free_servers_ > 0 && !waiting_.empty()) {
      --free_servers_;
      schedule(now + kPrefill, Event(kPrefilled, waiting_.front()));
      waiting_.pop_front();
    }
  }

  void schedule(double at, Event event) { queue_.schedule(Time{duration_from_seconds(at)}, event); }

  Serving serving_;
  RandomNumbers random_{2024};
  EventQueue queue_;
  std::vector<double> arrivals_;
  std::deque<std::uint32_t> waiting_;
  std::deque<std::uint32_t> prefilled_;
  std::uint32_t free_servers_;
  std::uint32_t free_slots_;
  double first_token_ = 0;
};

// Returns the 99th percentile of the time between tokens if one server prefills and decodes. A
// finished answer makes room for the next request, whose prefill delays the other 31.
double interleaved_p99(std::uint32_t steps) {
  EventQueue queue;
  std::vector<std::uint32_t> left(kSlots);
  // The slots are spread evenly over the tokens of their answers.
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    left[slot] = (slot + 1) * static_cast<std::uint32_t>(kMeanAnswer) / kSlots;
  }
  std::vector<double> gaps;
  double last = 0;
  queue.schedule(Time{duration_from_seconds(kStep)}, Event(0, 0));
  while (gaps.size() < steps) {
    queue.pop();
    const double now = to_seconds(queue.now().since_start);
    gaps.push_back(now - last);
    last = now;
    double next = now + kStep;
    for (std::uint32_t& tokens : left) {
      if (--tokens > 0) continue;
      tokens = static_cast<std::uint32_t>(kMeanAnswer);
      next += kPrefill;
    }
    queue.schedule(Time{duration_from_seconds(next)}, Event(0, 0));
  }
  std::ranges::sort(gaps);
  return gaps[gaps.size() * 99 / 100];
}

std::vector<StudyRow> balance_rows() {
  std::vector<StudyRow> rows;
  // Prefill: 3 / 0.91 = 3.297 a second; decode 32 / (512 x 0.019) = 3.289: the smaller counts.
  const double throughput = kSlots / (kMeanAnswer * kStep);
  // 20,000 requests at once: of 6,080 s, the first 0.91 s and the last answers (9.7 s) do not run
  // at full rate.
  rows.push_back(
      {.id = "saturated",
       .formula = "I7",
       .regime = "3 prefill servers, 1 decode server, all requests there at once",
       .predicted = throughput,
       .unit = "requests/s",
       .expected = {-0.004, 0},
       .tolerance = 0.02,
       .why = "with equal lengths both are busy all the time: 3 to 1 is right, not 1 to 3",
       .simulate = [](const Laboratory&) {
         const Serving serving{.requests = 20'000};
         return requests_per_second(serving, Servers(serving).run());
       }});
  // The notes have the ratio the wrong way round. Prefill binds at 1 / 0.91 = 1.099 per second:
  // 11.1 % of the 3 x 3.289 that three decode servers could do.
  rows.push_back({.id = "one-to-three",
                  .formula = "I7",
                  .regime = "1 prefill server, 3 decode servers, as the notes conclude",
                  .predicted = 3 * throughput,
                  .unit = "requests/s",
                  .expected = {1 / kPrefill / (3 * throughput) - 1 - 0.002,
                               1 / kPrefill / (3 * throughput) - 1 + 0.002},
                  .tolerance = 0.02,
                  .why = "the prefill server binds; 89 % of the decode slots are empty",
                  .simulate = [](const Laboratory&) {
                    const Serving serving{
                        .requests = 20'000, .prefill_servers = 1, .slots = 3 * kSlots};
                    return requests_per_second(serving, Servers(serving).run());
                  }});
  // Poisson arrivals at 3.0 per second load the prefill to 91 %. Waiting time of M/M/3 at that
  // load: Erlang C 0.835 x 0.91 / (3 x 0.09) = 2.81 s. With equal service times (M/D/3) it is half
  // of that, 1 % more after Cosmetatos (1975): 1.42 s on top of 0.91: +156 %. The mean of 10^6
  // requests that wait in long busy periods is good to a few percent.
  rows.push_back({.id = "poisson",
                  .formula = "I5",
                  .regime = "Poisson arrivals at 3.0 a second: time to the first token",
                  .predicted = kPrefill,
                  .expected = {1.47, 1.65},
                  .tolerance = 0.02,
                  .why = "requests queue for a prefill server: 1.6 service times at 91 % load",
                  .simulate = [](const Laboratory&) {
                    return Servers({.requests = 1'000'000, .rate = 3.0}).run().first_token_s;
                  }});
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
                  .simulate = [](const Laboratory&) {
                    const Serving serving{
                        .requests = 200'000, .random_lengths = true, .waits_in_prefill = true};
                    return requests_per_second(serving, Servers(serving).run());
                  }});
  // A slot ends every 512 / 32 = 16 steps, so 6 % of the gaps hold a prefill: the 99th percentile
  // is 0.019 + 0.91 s, 48.9 times a step.
  rows.push_back(
      {.id = "interleaved",
       .formula = "I10",
       .regime = "one server does prefill and decoding: 99th percentile of the time between tokens",
       .predicted = kStep,
       .expected = {kPrefill / kStep - 0.01, kPrefill / kStep + 0.01},
       .tolerance = 0.02,
       .why = "each prefill holds up 31 other answers for 48 steps",
       .simulate = [](const Laboratory&) { return interleaved_p99(100'000); }});
  return rows;
}

// ---- S44 ----

constexpr std::uint32_t kSequences = 32;
constexpr std::uint32_t kPrompt = 8192;
constexpr std::uint32_t kAnswer = 4096;

struct Evictions {
  double mean = 0;       // tokens a step
  double deviation = 0;  // deviation of a step from the mean
};

// Every sequence ends after kAnswer steps, and another follows at once. The sequences began at
// random steps.
Evictions evictions(std::uint32_t steps) {
  RandomNumbers random(7);
  EventQueue queue;
  for (std::uint32_t sequence = 0; sequence < kSequences; ++sequence) {
    const auto phase = static_cast<std::int64_t>(random.uniform() * kAnswer);
    queue.schedule(Time{Duration(phase)}, Event(0, sequence));  // 1 ps stands for a step
  }
  std::vector<double> freed(steps, 0);
  while (!queue.empty()) {
    const Event event = queue.pop();
    const auto step = static_cast<std::size_t>(queue.now().since_start.count());
    if (step >= steps) continue;
    freed[step] += kPrompt + kAnswer;
    queue.schedule(Time{Duration(static_cast<std::int64_t>(step) + kAnswer)}, event);
  }
  Evictions result;
  result.mean = std::accumulate(freed.begin(), freed.end(), 0.0) / steps;
  for (const double tokens : freed) {
    result.deviation += (tokens - result.mean) * (tokens - result.mean) / steps;
  }
  result.deviation = std::sqrt(result.deviation);
  return result;
}

std::vector<StudyRow> eviction_rows() {
  const double formula = predict("I6", {{"B", kSequences}, {"p", kPrompt}, {"G", kAnswer}});
  // 32 caches of 12,288 tokens in 4,096 steps: 96 per step, exactly over whole periods. A step
  // frees a whole cache with probability 32/4096 = 1/128: sqrt(1/128 - 1/128^2) x 12,288 = 1,082
  // tokens of deviation. It is larger if two sequences began at one step (a pair of 32 in 4,096
  // steps: 12 % likely, then sqrt(34/32) - 1 = 3 % more).
  return {{.id = "mean",
           .formula = "I6",
           .regime = "32 sequences of 8,192 + 4,096 tokens: freed a step, mean of 40,960 steps",
           .predicted = formula,
           .unit = "tokens",
           .expected = {-1e-9, 1e-9},
           .why = "what comes in goes out",
           .simulate = [](const Laboratory&) { return evictions(10 * kAnswer).mean; }},
          {.id = "deviation",
           .formula = "I6",
           .regime = "the same: standard deviation of a step",
           .predicted = formula,
           .unit = "tokens",
           .expected = {1081.9 / 96 - 1 - 0.01, 1.03 * 1081.9 / 96 - 1 + 0.01},
           .why = "a whole cache of 12,288 tokens goes at once, in one of 128 steps",
           .simulate = [](const Laboratory&) { return evictions(10 * kAnswer).deviation; }}};
}

}  // namespace

std::vector<Study> serving_queue_studies() {
  return {{.id = "S43",
           .source = kBookInference,
           .title = "Balance of prefill and decode servers",
           .claim = "three prefill servers keep one decode server busy: 3.29 answers a second",
           .rows = balance_rows,
           .finding =
               "The queue at 91 % load is 1.57 service times (1.43 s) in front of the first token, "
               "which agrees with the approximation of M/D/3; 1.4 service times is a little low."},
          {.id = "S44",
           .source = kBookInference,
           .title = "Evictions from the cache",
           .claim = "in steady state a step frees B (P + G) / G = 96 cache entries",
           .rows = eviction_rows}};
}

}  // namespace stepsim
