#include "serving/cases/scheduler_case.h"

#include <algorithm>

namespace stepsim {
namespace {

constexpr std::int64_t kPicosecondsPerMicrosecond = 1'000'000;

ServingOptions options_of(const SchedulerCase& given) {
  ServingOptions options;
  options.replicas.options = given.engine;
  return options;
}

std::int64_t microseconds(Duration duration) {
  return duration.count() / kPicosecondsPerMicrosecond;
}

}  // namespace

std::vector<Problem> check(const SchedulerCase& given) {
  return check(given.requests, options_of(given));
}

CaseAnswer answer_of(const SchedulerCase& given) {
  LinearStepTime cost(given.step_time);
  const ServingResult result =
      simulate_serving(given.requests, options_of(given), {.replicas = cost});
  CaseAnswer answer;
  answer.steps = result.steps;
  answer.peak_kv_blocks = result.peak_kv_blocks;
  for (const RequestRecord& record : result.requests) {
    answer.requests.push_back({.first_token_us = microseconds(record.first_token.since_start),
                               .last_token_us = microseconds(record.last_token.since_start),
                               .preemptions = record.preemptions,
                               .longest_gap_us = microseconds(record.longest_gap)});
    answer.end_us = std::max(answer.end_us, answer.requests.back().last_token_us);
  }
  return answer;
}

}  // namespace stepsim
