// Small serving problems for tests: requests, and an engine whose steps take a fixed or linear
// time.

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "serving/serve.h"

namespace stepsim {

struct AskedRequest {
  Duration arrival{};
  std::int32_t input = 1;
  std::int32_t output = 1;
  std::int32_t prefix_tokens = 0;
};

inline RequestList requests_of(const std::vector<AskedRequest>& asked) {
  RequestList list{.requests = {}, .tenants = {Tenant{.name = "all"}}};
  for (const AskedRequest& one : asked) {
    Request& request = list.requests.emplace_back();
    request.arrival = Time{one.arrival};
    request.input_tokens = one.input;
    request.output_tokens = one.output;
    request.prefix_tokens = one.prefix_tokens;
  }
  return list;
}

// vLLM's rules without a prefix cache, unless the test turns it on.
inline EngineOptions plain_engine() {
  EngineOptions options;
  options.cache.prefix_cache = false;
  return options;
}

inline ServingResult serve(const RequestList& list, const EngineOptions& engine,
                           LinearStepTime::Rates rates = {.base = std::chrono::milliseconds(10)}) {
  ServingOptions options;
  options.replicas.options = engine;
  LinearStepTime cost(rates);
  return simulate_serving(list, options, {.replicas = cost});
}

inline std::vector<std::int64_t> milliseconds_of(const ServingResult& result,
                                                 Duration (RequestRecord::*what)() const) {
  std::vector<std::int64_t> times;
  for (const RequestRecord& record : result.requests) {
    times.push_back((record.*what)().count() / 1'000'000'000);
  }
  return times;
}

inline std::vector<std::int64_t> first_tokens_ms(const ServingResult& result) {
  return milliseconds_of(result, &RequestRecord::time_to_first_token);
}

inline std::vector<std::int64_t> end_to_end_ms(const ServingResult& result) {
  return milliseconds_of(result, &RequestRecord::end_to_end);
}

}  // namespace stepsim
