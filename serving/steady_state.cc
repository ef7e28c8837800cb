#include "serving/steady_state.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace stepsim {
namespace {

const RequestRecord& record_of(const ServingResult& result, std::size_t request) {
  return result.requests[RequestId(static_cast<std::uint32_t>(request))];
}

// When the requests that loops begin with have ended.
Time end_of_first(const RequestList& list, const ServingResult& result) {
  std::vector<std::int64_t> left;
  for (const Tenant& tenant : list.tenants) {
    left.push_back(tenant.loop ? tenant.loop->concurrency : 0);
  }
  Time end;
  for (std::size_t i = 0; i < list.requests.size(); ++i) {
    if (left[list.requests[i].tenant.index()]-- <= 0) continue;
    end = std::max(end, record_of(result, i).last_token);
  }
  return end;
}

// The mean number of requests in the system from one time to another.
double mean_in_system(const RequestList& list, const ServingResult& result, Time from, Time until) {
  double sum = 0;
  for (std::size_t i = 0; i < list.requests.size(); ++i) {
    const RequestRecord& record = record_of(result, i);
    const Time begin = std::max(record.arrival, from);
    const Time end = std::min(record.last_token, until);
    if (end > begin) sum += to_seconds(end - begin);
  }
  return sum / to_seconds(until - from);
}

bool is_open(const RequestList& list) {
  return std::ranges::any_of(list.tenants, [](const Tenant& tenant) { return !tenant.loop; });
}

void judge(const RequestList& list, const ServingResult& result, SteadyState& steady) {
  constexpr double kLeastGrowth = 0.01;  // of the rate of arrivals
  const Duration third = (steady.until - steady.from) / 3;
  const double first = mean_in_system(list, result, steady.from, steady.from + third);
  const double last =
      mean_in_system(list, result, Time{steady.until.since_start - third}, steady.until);
  steady.growth_per_s = (last - first) / (2 * to_seconds(third));
  const double comes = steady.per_second(steady.requests);
  steady.is_sustained = !is_open(list) || last - first <= 2 * std::sqrt(first) ||
                        steady.growth_per_s <= kLeastGrowth * comes;
}

}  // namespace

std::optional<SteadyState> steady_state_of(const RequestList& list, const ServingResult& result,
                                           const ServiceObjective& objective) {
  if (list.requests.empty()) return std::nullopt;
  Time first = record_of(result, 0).arrival;
  Time last = first;
  double whole = 0;
  for (std::size_t i = 0; i < list.requests.size(); ++i) {
    const RequestRecord& record = record_of(result, i);
    first = std::min(first, record.arrival);
    last = std::max(last, record.arrival);
    whole += to_seconds(record.end_to_end());
  }
  const Duration mean = duration_from_seconds(whole / static_cast<double>(list.requests.size()));
  SteadyState steady{.until = last};
  steady.from =
      std::max({first + (last - first) / 4, first + 3 * mean / 2, end_of_first(list, result)});
  if (is_open(list) ? last < steady.from + mean : last <= steady.from) return std::nullopt;
  std::vector<Duration> first_tokens;
  std::vector<Duration> tokens;
  for (std::size_t i = 0; i < list.requests.size(); ++i) {
    const RequestRecord& record = record_of(result, i);
    if (record.last_token > steady.from && record.last_token <= steady.until) {
      ++steady.answered;
      steady.output_tokens += record.tokens;
    }
    if (record.arrival < steady.from) continue;
    ++steady.requests;
    if (objective.is_met_by(record)) ++steady.good_requests;
    first_tokens.push_back(record.time_to_first_token());
    if (record.tokens > 1) tokens.push_back(record.time_per_output_token());
  }
  if (steady.requests < 2) return std::nullopt;
  steady.ttft = spread_of(first_tokens);
  steady.tpot = spread_of(tokens);
  judge(list, result, steady);
  return steady;
}

}  // namespace stepsim
