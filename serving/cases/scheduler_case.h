// SchedulerCase is a small serving problem with an answer that is known exactly: an engine of
// vLLM's rules, steps whose time is linear, and requests, in whole microseconds. `stepsim serve
// --cases` runs files of them (proto/serving_case/).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "serving/serve.h"

namespace stepsim {

struct CaseAnswer {
  struct Request {
    std::int64_t first_token_us = 0;
    std::int64_t last_token_us = 0;
    std::int64_t preemptions = 0;
    std::int64_t longest_gap_us = 0;
    friend bool operator==(const Request&, const Request&) = default;
  };
  std::int64_t end_us = 0;
  std::int64_t steps = 0;
  std::int64_t peak_kv_blocks = 0;
  std::vector<Request> requests;
  friend bool operator==(const CaseAnswer&, const CaseAnswer&) = default;
};

struct SchedulerCase {
  std::string id;  // a JSON value
  EngineOptions engine{};
  LinearStepTime::Rates step_time{};
  RequestList requests{};
  std::optional<CaseAnswer> expected{};
};

// Returns why the case can't be served; empty if it can.
std::vector<Problem> check(const SchedulerCase& given);

// REQUIRES: check() finds nothing. Throws ServingStuck.
CaseAnswer answer_of(const SchedulerCase& given);

}  // namespace stepsim
