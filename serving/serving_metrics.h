// ServingMetrics sums a run up: how long requests waited and took, how many tokens came out, how
// many requests were served well. Percentiles are nearest rank: p90 of n values is value number
// ceil(0.9 n) in ascending order. Means are whole picoseconds, rounded down.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "serving/requests/request.h"
#include "serving/serving_result.h"
#include "sim/base/units.h"

namespace stepsim {

struct ServiceObjective {
  std::optional<Duration> ttft{};
  std::optional<Duration> tpot{};
  std::optional<Duration> end_to_end{};

  bool is_met_by(const RequestRecord& record) const;
};

struct TimeSpread {
  std::int64_t count = 0;  // 0: the others mean nothing
  Duration mean{};
  Duration p50{};
  Duration p90{};
  Duration p99{};
};

// Changes the order of the values.
TimeSpread spread_of(std::vector<Duration>& values);

struct ServingMetrics {
  std::int64_t requests = 0;
  std::int64_t output_tokens = 0;
  Duration length{};  // from the first arrival to the last token
  TimeSpread ttft{};
  TimeSpread tpot{};  // of requests with two tokens and more: (last - first) / (tokens - 1)
  TimeSpread inter_token{};
  TimeSpread end_to_end{};
  std::int64_t good_requests = 0;  // that met the objective
  // Means over requests. They add up to the mean end to end: what rounding loses goes to the
  // largest.
  std::array<Duration, kRequestParts> parts{};

  double per_second(std::int64_t count) const;
};

// The requests that metrics are of.
struct RequestFilter {
  std::optional<TenantId> tenant{};
  std::optional<std::size_t> model{};

  bool is_everything() const { return !tenant && !model; }
  bool takes(const RequestList& list, const Request& request) const {
    return (!tenant || request.tenant == *tenant) && (!model || list.model_of(request) == *model);
  }
};

// Gaps between tokens are counted over everything only. Sorts the gaps.
ServingMetrics metrics_of(const RequestList& list, ServingResult& result,
                          const ServiceObjective& objective, const RequestFilter& filter = {});

}  // namespace stepsim
