// `stepsim serve --cases F.jsonl`: computes scheduler cases, and compares those that say what is
// expected.
//
// Fields of the JSON: cases [{id, end_us, steps, peak_kv_blocks, requests [{first_token_us,
// last_token_us, preemptions, longest_gap_us}...], as_expected}...]. as_expected is null without an
// expected answer. A case in which requests wait for ever has `stuck` (why) in place of the answer.

#pragma once

#include <string>
#include <vector>

#include "cli/subcommand.h"
#include "serving/cases/scheduler_case.h"
#include "traces/results/result_table.h"

namespace stepsim {

struct ComputedCase {
  std::string id;  // a JSON value
  CaseAnswer answer;
  std::string stuck;  // why there is no answer; "" if there is one
  std::optional<CaseAnswer> expected;

  bool as_expected() const { return !expected || (stuck.empty() && answer == *expected); }
};

std::vector<ComputedCase> compute(const std::vector<SchedulerCase>& cases);

// Returns the counts, and the first cases that are not as expected with what differs.
std::string cases_report(const std::vector<ComputedCase>& cases);

const ResultTable<std::vector<ComputedCase>>& cases_results();

// kNo unless every case that says what is expected is as expected.
ExitStatus status_of(const std::vector<ComputedCase>& cases);

}  // namespace stepsim
