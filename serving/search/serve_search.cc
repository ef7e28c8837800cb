#include "serving/search/serve_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <tuple>
#include <utility>

#include "experiment/build_cluster.h"
#include "experiment/passes/pass_times.h"
#include "serving/passes/kv_room.h"
#include "serving/passes/simulated_step_cost.h"
#include "serving/requests/request_source.h"
#include "serving/serving_run.h"
#include "serving/steady_state.h"
#include "sim/base/parallel.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

constexpr double kWorthMore = 1.01;  // tokens that twice the requests must bring

struct SearchedLayout {
  std::vector<LoadPoint> points;
  std::string why;  // there are none
};

class LayoutSearch {
 public:
  LayoutSearch(const ServedLayout& layout, std::size_t number, const ServeSearchOptions& options)
      : layout_(layout),
        number_(number),
        options_(options),
        times_(layout.experiment, cluster_for_steps(layout.experiment), {}),
        cost_(times_, layout.experiment.plan.mesh.dp) {
    serving_.replicas = layout.engine.value_or(options.engine);
    serving_.replicas.count = 1;
    serving_.seed = options.seed;
  }

  SearchedLayout run() {
    SearchedLayout found{.points = {}, .why = find_room()};
    if (options_.rate) {
      if (found.why.empty()) find_highest_rate(found);
      return found;
    }
    double most = 0;
    for (std::int64_t requests = 1; found.why.empty() && requests <= options_.most_requests;
         requests *= 2) {
      if (!add_point(requests, found)) break;
      const double tokens = found.points.back().tokens_per_s_per_chip;
      if (tokens < kWorthMore * most) break;
      most = tokens;
    }
    if (found.why.empty()) halve_to_the_last_that_meets(found);
    return found;
  }

 private:
  // Answers of one length would stay in step for ever.
  static Length spread(const Length& length) {
    if (length.kind != LengthKind::kFixed) return length;
    const std::int32_t tenth = length.low / 10;
    return {.kind = LengthKind::kUniform, .low = length.low - tenth, .high = length.low + tenth};
  }

  bool add_point(std::int64_t requests, SearchedLayout& found) {
    return add_point(asked(requests), requests, found);
  }

  bool add_point(const RequestList& list, std::int64_t requests, SearchedLayout& found) {
    const std::vector<Problem> problems = check(list, serving_);
    if (problems.empty()) {
      found.points.push_back(serve(list, requests));
      return true;
    }
    found.why = problems.front().field + ": " + problems.front().message;
    return false;
  }

  // Serves requests that come at random at this rate, for 25 times as long as one takes alone.
  bool add_rate(double rate, SearchedLayout& found) {
    constexpr double kLeast = 200;
    constexpr double kTimes = 25;
    constexpr double kMost = 20'000;
    RequestSource source;
    source.kind = ArrivalKind::kPoisson;
    source.rate = rate;
    source.count =
        static_cast<std::int64_t>(std::clamp(kTimes * rate * to_seconds(of_one_), kLeast, kMost));
    source.input = options_.input;
    source.output = spread(options_.output);
    source.seed = options_.seed;
    if (!add_point(make_requests(std::array{source}), 0, found)) return false;
    LoadPoint& point = found.points.back();
    point.rate = rate;
    point.replicas = static_cast<std::int64_t>(std::ceil(*options_.rate / rate));
    point.chips *= point.replicas;
    return true;
  }

  // Doubles the rate of a request at a time until it is too high, and halves what is between down
  // to a part in kParts.
  void find_highest_rate(SearchedLayout& found) {
    constexpr double kParts = 32;
    constexpr double kSlowest = 1.0 / 16;
    SearchedLayout alone;
    if (!add_point(1, alone)) {
      found.why = alone.why;
      return;
    }
    const LoadPoint& one = alone.points.front();
    const double of_one = one.requests_per_s_per_chip * static_cast<double>(one.chips);
    of_one_ = duration_from_seconds(1 / of_one);
    double low = 0;
    double high = kSlowest * of_one;
    const double most = 2 * static_cast<double>(options_.most_requests) * of_one;
    while (high < most) {
      if (!add_rate(high, found)) return;
      if (!found.points.back().meets) break;
      low = high;
      high *= 2;
    }
    while (low > 0 && kParts * (high - low) > high) {
      const double middle = (low + high) / 2;
      if (!add_rate(middle, found)) return;
      (found.points.back().meets ? low : high) = middle;
    }
    std::ranges::stable_sort(found.points, {}, &LoadPoint::rate);
  }

  // Narrows the most requests that meet the objective down to a part in kParts.
  void halve_to_the_last_that_meets(SearchedLayout& found) {
    constexpr std::int64_t kParts = 16;
    const auto fails = [](const LoadPoint& point) { return !point.meets; };
    const auto first = std::ranges::find_if(found.points, fails);
    if (first == found.points.begin() || first == found.points.end()) return;
    std::int64_t low = std::prev(first)->concurrency;
    std::int64_t high = first->concurrency;
    while (kParts * (high - low) > high && high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      if (!add_point(middle, found)) return;
      (found.points.back().meets ? low : high) = middle;
    }
    std::ranges::stable_sort(found.points, {}, &LoadPoint::concurrency);
  }

  std::string find_room() {
    EngineOptions& engine = serving_.replicas.options;
    engine = of_ranks(engine, layout_.experiment.plan.mesh.dp);
    engine.cache.kv_fraction = std::min(engine.cache.kv_fraction, 1 - options_.headroom);
    const KvRoom room = fit_cache(layout_.experiment, times_.cluster(), engine);
    if (engine.cache.kv_blocks && engine.batching.sequences > 0) return "";
    return fmt::format("memory: weights and the largest pass take {} of {} a chip",
                       to_text(room.others), to_text(room.others + room.available));
  }

  RequestList asked(std::int64_t requests) const {
    RequestSource source;
    source.kind = ArrivalKind::kClosed;
    source.concurrency = requests;
    source.count = requests * options_.rounds;
    source.input = options_.input;
    source.output = spread(options_.output);
    source.seed = options_.seed;
    return make_requests(std::array{source});
  }

  LoadPoint serve(const RequestList& list, std::int64_t requests) {
    const auto watch = [this](double) {
      if (options_.watch) options_.watch();
    };
    ServingResult result = simulate_serving(list, serving_, {.replicas = cost_}, watch);
    const ServingMetrics metrics = metrics_of(list, result, options_.objective);
    const std::int64_t chips = layout_.experiment.plan.mesh.ranks();
    const auto of_chip = [chips](double rate) { return rate / static_cast<double>(chips); };
    LoadPoint point{.layout = number_, .chips = chips, .concurrency = requests};
    point.requests_per_s_per_chip = of_chip(metrics.per_second(metrics.requests));
    point.tokens_per_s_per_chip = of_chip(metrics.per_second(metrics.output_tokens));
    point.good = static_cast<double>(metrics.good_requests) / static_cast<double>(metrics.requests);
    const std::optional<SteadyState> steady = steady_state_of(list, result, options_.objective);
    if (steady) {
      point.requests_per_s_per_chip = of_chip(steady->per_second(steady->answered));
      point.tokens_per_s_per_chip = of_chip(steady->per_second(steady->output_tokens));
      point.good = steady->good_share();
    }
    set_times(steady ? steady->ttft : metrics.ttft, steady ? steady->tpot : metrics.tpot, point);
    if (point.concurrency == 0) {
      point.concurrency =
          std::llround(to_seconds(metrics.end_to_end.mean) * metrics.per_second(metrics.requests));
    }
    point.meets = point.good >= options_.share && (!steady || steady->is_sustained);
    return point;
  }

  void set_times(const TimeSpread& ttft, const TimeSpread& tpot, LoadPoint& point) const {
    constexpr double kMedian = 0.5;
    constexpr double kNineTenths = 0.9;
    const auto of_share = [this](const TimeSpread& spread) {
      if (options_.share <= kMedian) return spread.p50;
      return options_.share <= kNineTenths ? spread.p90 : spread.p99;
    };
    point.ttft = ttft.mean;
    point.tpot = tpot.mean;
    point.ttft_of_share = of_share(ttft);
    point.tpot_of_share = of_share(tpot);
    if (point.tpot > Duration()) point.tokens_per_s_per_user = 1 / to_seconds(point.tpot);
  }

  const ServedLayout& layout_;
  std::size_t number_;
  const ServeSearchOptions& options_;
  PassTimes times_;
  SimulatedStepCost cost_;
  ServingOptions serving_{};
  Duration of_one_{};  // from arrival to the last token, of a request alone
};

SearchedLayout search_layout(const ServedLayout& layout, std::size_t number,
                             const ServeSearchOptions& options) {
  try {
    return LayoutSearch(layout, number, options).run();
  } catch (const ServingStuck& stuck) {
    return {.points = {}, .why = stuck.what()};
  }
}

// Returns the points that no other beats, the fastest for users last.
std::vector<std::size_t> front_of(const std::vector<LoadPoint>& points) {
  std::vector<std::size_t> order(points.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&points](std::size_t a, std::size_t b) {
    return std::pair(points[a].tokens_per_s_per_user, points[a].tokens_per_s_per_chip) >
           std::pair(points[b].tokens_per_s_per_user, points[b].tokens_per_s_per_chip);
  });
  std::vector<std::size_t> front;
  double most = 0;
  for (const std::size_t i : order) {
    if (points[i].tokens_per_s_per_chip <= most) continue;
    most = points[i].tokens_per_s_per_chip;
    front.push_back(i);
  }
  std::ranges::reverse(front);
  return front;
}

std::optional<std::size_t> best_of(const std::vector<LoadPoint>& points) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!points[i].meets) continue;
    const auto rank = [&points](std::size_t number) {
      const LoadPoint& point = points[number];
      const std::int64_t needed = point.rate > 0 ? point.chips : 0;
      return std::tuple(-needed, point.requests_per_s_per_chip, -point.chips);
    };
    if (!best || rank(i) > rank(*best)) best = i;
  }
  return best;
}

// Returns how many times over the objective a point is.
double excess_of(const LoadPoint& point, const ServiceObjective& objective) {
  double excess = 0;
  const auto compare = [&excess](Duration is, const std::optional<Duration>& most) {
    if (most) excess = std::max(excess, to_seconds(is) / to_seconds(*most));
  };
  compare(point.ttft_of_share, objective.ttft);
  compare(point.tpot_of_share, objective.tpot);
  return excess;
}

std::optional<std::size_t> nearest_of(const std::vector<LoadPoint>& points,
                                      const ServiceObjective& objective) {
  std::optional<std::size_t> nearest;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!nearest || excess_of(points[i], objective) < excess_of(points[*nearest], objective)) {
      nearest = i;
    }
  }
  return nearest;
}

}  // namespace

ServeSearchResult search_serving(const std::vector<ServedLayout>& layouts,
                                 const ServeSearchOptions& options) {
  std::vector<SearchedLayout> searched(layouts.size());
  std::mutex reporting;
  std::size_t done = 0;
  for_each_in_parallel(layouts.size(), options.threads, [&](std::size_t i) {
    searched[i] = search_layout(layouts[i], i, options);
    const std::lock_guard lock(reporting);
    if (options.progress) options.progress(++done, layouts.size());
  });
  ServeSearchResult result;
  for (std::size_t i = 0; i < searched.size(); ++i) {
    if (searched[i].points.empty()) {
      result.unusable.push_back({i, searched[i].why});
      continue;
    }
    const auto chips = [&](std::size_t layout) {
      return layouts[layout].experiment.plan.mesh.ranks();
    };
    if (!result.smallest || chips(i) < chips(*result.smallest)) result.smallest = i;
    result.points.insert(result.points.end(), searched[i].points.begin(), searched[i].points.end());
  }
  result.front = front_of(result.points);
  result.best = best_of(result.points);
  if (!result.best) result.nearest = nearest_of(result.points, options.objective);
  return result;
}

double price_of_million_tokens(const LoadPoint& point, double chip_hour) {
  constexpr double kSecondsAnHour = 3600;
  return chip_hour / kSecondsAnHour / point.tokens_per_s_per_chip * 1e6;
}

}  // namespace stepsim
