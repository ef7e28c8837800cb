// How many plans a search looks at and simulates a second, on one thread: small models on 8 and 64
// chips. "whole" simulates every plan of a space that can run. "asked" is the question as users put
// it: the ten best and the front. Plans that break a rule, or do the same as another, count among
// the plans, but not among those that are bounded or simulated. Expected: 1,000 plans bounded or
// simulated a second of the smallest model, 200 simulated ones, and a cost of at most 1 us an op.
#include <fmt/format.h>

#include <cstdint>
#include <ctime>
#include <utility>

#include "proto/load_experiment.h"
#include "search/search.h"

namespace {

using namespace stepsim;

struct Case {
  const char* model;
  const char* cluster;
  const char* within;
};

constexpr const char* kStart = "global-batch=64,sequence=4096";
constexpr Case kCases[] = {
    {"ernie-4.5-0.3b", "dgx-h100-8",
     "tp=1,2,4,cp=1,2,pp=1,2,3,6,zero=0,1,2,3,microbatch=1,2,4,recompute=none,full,"
     "schedule=1f1b,zb_h1"},
    {"ernie-4.5-0.3b", "dgx-h100-64",
     "tp=1,2,4,cp=1,2,pp=1,2,zero=0,1,2,3,microbatch=1,2,recompute=none,full,schedule=1f1b,zb_h1"},
    {"llama3-8b", "dgx-h100-8",
     "tp=1,2,4,8,cp=1,2,pp=1,2,4,8,zero=0,1,2,3,microbatch=1,2,recompute=none,full"},
    {"llama3-8b", "dgx-h100-64",
     "tp=1,2,4,8,cp=1,2,pp=1,2,4,8,zero=1,2,3,microbatch=1,2,recompute=none,full"}};

SearchPlace place_of(const Case& of) {
  LoadedExperiment loaded = load_start({.model = of.model, .cluster = of.cluster, .plan = kStart});
  std::vector<Problem> problems;
  std::vector<Dimension> dimensions = read_space(of.within, "--within", problems);
  throw_if_any(std::move(problems));
  return {.base = std::move(loaded.experiment),
          .places = std::move(loaded.topology.places),
          .space = SearchSpace(std::move(dimensions), true)};
}

void measure(const Case& of, bool whole) {
  std::vector<SearchPlace> places;
  places.push_back(place_of(of));
  SearchOptions options;
  if (whole) {
    options.top = places.front().space.size();
    options.front = FrontEffort::kNone;
  }
  const std::clock_t begin = std::clock();
  const SearchResult result = search_plans(places, options);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::uint64_t bounded = result.simulated;
  std::uint64_t begun = result.simulated;  // simulations, to their end or not
  for (const auto& [reason, count] : result.excluded) {
    const bool is_plan =
        !reason.starts_with("rule of") && reason != "chips" && reason != "same as another";
    if (is_plan) bounded += count;
    if (reason == "worse while simulated") begun += count;
  }
  const auto rate = [seconds](std::uint64_t count) { return static_cast<double>(count) / seconds; };
  fmt::print("{:<16} {:<13} {:<6} {:>6} {:>7} {:>6} {:>8.2f} {:>8.0f} {:>9.0f} {:>8.0f} {:>8.2f}\n",
             of.model, of.cluster, whole ? "whole" : "asked", result.considered, bounded, begun,
             seconds, rate(result.considered), rate(bounded), rate(begun),
             1e6 * seconds / static_cast<double>(result.ops));
}

}  // namespace

int main() {
  fmt::print("{:<16} {:<13} {:<6} {:>6} {:>7} {:>6} {:>8} {:>8} {:>9} {:>8} {:>8}\n", "model",
             "cluster", "", "plans", "bounded", "run", "CPU s", "plans/s", "bounded/s", "run/s",
             "us an op");
  for (const Case& one : kCases) {
    measure(one, true);
    measure(one, false);
  }
}
