// search_serving() compares layouts of a model by what they serve: each at 1, 2, 4, ... requests at
// a time, until more of them bring no more tokens, and between the last of these that meets the
// objective and the next. Figures are of the steady state (serving/steady_state.h): what
// comes at once at the start says nothing of a load that goes on. Answers of one length are drawn a
// tenth shorter to longer, as those of one length would stay in step for ever.
//
// With `rate` the question is how many chips a load takes: requests come at random, and of each
// layout the highest rate is found at which one replica's load is sustained within the objective.
// ceil(rate / that) replicas serve it.
//
//   const ServeSearchResult found = search_serving(layouts, {.engine = engine, ...});
//   if (found.best) layouts[found.points[*found.best].layout]
//
// A layout is one replica; several of them serve as many times more. The best point is the one with
// the most requests a second and chip of those that meet the objective, and among equal ones the
// one with the fewest chips; with a rate that with the fewest chips for it. Where none meets the
// objective, the nearest is the one that misses it by the smallest factor. The front is the points
// that no other beats in tokens a second a chip and a user. Layouts are simulated in parallel; the
// result is the same with any number of threads.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "serving/requests/length.h"
#include "serving/serve.h"
#include "serving/serving_metrics.h"
#include "sim/base/units.h"

namespace stepsim {

struct ServedLayout {
  std::string plan;                      // as it is shown
  Experiment experiment;                 // its plan is of inference, without problems
  std::optional<ReplicaGroup> engine{};  // unset: that of the options
};

struct ServeSearchOptions {
  ReplicaGroup engine{};
  Length input{};
  Length output{};
  ServiceObjective objective{};
  double share = 0.9;                 // of the requests that must meet it
  double headroom = 0;                // share of a chip's memory that weights and caches leave free
  std::int64_t most_requests = 1024;  // at a time
  std::int64_t rounds = 5;            // requests that follow each other in each place, about
  std::optional<double> rate{};       // requests a second that come, in place of loads by number
  std::uint64_t seed = 1;
  std::size_t threads = 1;
  // Called when layouts are done, one call at a time, but from any thread. May be empty.
  std::function<void(std::size_t done, std::size_t all)> progress{};
  // Called now and then by every thread that serves, and may throw to end the search. May be empty.
  std::function<void()> watch{};
};

// A layout with so many requests at a time.
struct LoadPoint {
  std::size_t layout = 0;
  std::int64_t chips = 0;
  std::int64_t concurrency = 0;  // with a rate the mean number in the system
  double rate = 0;               // of one replica; 0: as many at a time as concurrency says
  std::int64_t replicas = 1;     // that the rate asked for takes; `chips` are those of all
  double requests_per_s_per_chip = 0;
  double tokens_per_s_per_chip = 0;
  double tokens_per_s_per_user = 0;  // of the mean time a token
  Duration ttft{};                   // means
  Duration tpot{};
  Duration ttft_of_share{};  // that the share of the requests stays below: p50, p90 or p99
  Duration tpot_of_share{};
  double good = 0;  // share of the requests that meet the objective
  bool meets = false;
};

struct UnusableLayout {
  std::size_t layout = 0;
  std::string why;
};

struct ServeSearchResult {
  std::vector<LoadPoint> points;   // by layout, then by concurrency
  std::vector<std::size_t> front;  // positions in points, most tokens a user last
  std::optional<std::size_t> best{};
  std::optional<std::size_t> nearest{};   // where nothing meets the objective
  std::optional<std::size_t> smallest{};  // layout of the fewest chips that has room for requests
  std::vector<UnusableLayout> unusable;
};

// REQUIRES: rounds, most_requests and threads at least 1.
ServeSearchResult search_serving(const std::vector<ServedLayout>& layouts,
                                 const ServeSearchOptions& options);

// Returns the price of a million tokens where a chip costs this much an hour.
double price_of_million_tokens(const LoadPoint& point, double chip_hour);

}  // namespace stepsim
