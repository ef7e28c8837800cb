// steady_state_of() says what a run is like between its beginning, when replicas are empty or all
// requests come at once, and its end, when no more come, and whether it could go on like that.
//
// The window begins when a quarter of the time of arrivals is over, the requests that came first
// have ended (of a closed loop: as many as it keeps in the system), and one and a half mean times
// of a request have passed; it ends with the last arrival. Figures are of the requests that come
// inside, rates are of what comes and ends inside.
//
// An open load is not sustained if requests pile up: between the first and the last third of the
// window their mean number in the system grows
//   by more than 2 sqrt(n), twice what independent requests scatter, n at first, and
//   at more than 1 % of the rate at which they come.
// A closed loop is always sustained. Short runs don't tell: ask one of kTellingTimes mean times of
// a request.

#pragma once

#include <cstdint>
#include <optional>

#include "serving/requests/request.h"
#include "serving/serving_metrics.h"
#include "serving/serving_result.h"
#include "sim/base/units.h"

namespace stepsim {

inline constexpr double kTellingTimes = 100;

struct SteadyState {
  Time from{};
  Time until{};
  std::int64_t requests = 0;
  std::int64_t good_requests = 0;
  std::int64_t answered = 0;       // that end inside
  std::int64_t output_tokens = 0;  // of these
  TimeSpread ttft{};
  TimeSpread tpot{};
  double growth_per_s = 0;  // of the requests in the system
  bool is_sustained = true;

  double per_second(std::int64_t count) const {
    return static_cast<double>(count) / to_seconds(until - from);
  }
  double good_share() const {
    return static_cast<double>(good_requests) / static_cast<double>(requests);
  }
};

// Returns nullopt if the window is shorter than a mean request, or has fewer than two.
std::optional<SteadyState> steady_state_of(const RequestList& list, const ServingResult& result,
                                           const ServiceObjective& objective);

}  // namespace stepsim
