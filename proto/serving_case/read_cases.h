// Reads a file of scheduler cases: a JSON object a line, in whole microseconds.
//
//   {"id": "case000",
//    "engine": {"token_budget", "max_sequences", "block_tokens", "reserve_whole_sequence",
//               "watermark", "chunked_prefill", "long_prefill_threshold", "kv_blocks"},
//    "speculation": {"drafts", "accepted"},
//    "step_time": {"base_us", "per_token_us", "per_kv_token_us"},
//    "requests": [{"arrival_us", "input_tokens", "output_tokens"}],
//    "expected": {"end_us", "steps", "peak_kv_blocks",
//                 "requests": [{"first_token_us", "last_token_us", "preemptions",
//                               "longest_gap_us"}]}}                            optional
//
// A threshold of 0 is none. An id is a string or a whole number. Other fields of a case are for
// people; other fields of engine, speculation and step_time are refused, because they would mean
// something.

#pragma once

#include <string>
#include <vector>

#include "serving/cases/scheduler_case.h"

namespace stepsim {

// Throws ConfigError with the problems of all lines (the first thousand): unreadable, not JSON,
// missing fields, wrong types and limits, requests that don't fit.
std::vector<SchedulerCase> read_cases(const std::string& path);

}  // namespace stepsim
