#include "cli/serve/serve_cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/json_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kListedCases = 20;

std::string answer_json(const CaseAnswer& answer) {
  std::string text =
      fmt::format("\"end_us\": {}, \"steps\": {}, \"peak_kv_blocks\": {}, \"requests\": [",
                  answer.end_us, answer.steps, answer.peak_kv_blocks);
  for (const CaseAnswer::Request& request : answer.requests) {
    text += fmt::format(
        "{}{{\"first_token_us\": {}, \"last_token_us\": {}, \"preemptions\": {}, "
        "\"longest_gap_us\": {}}}",
        text.back() == '[' ? "" : ", ", request.first_token_us, request.last_token_us,
        request.preemptions, request.longest_gap_us);
  }
  return text + "]";
}

// Returns "steps 12, expected 13" for each number of the case that differs, then the first request
// that does.
std::string difference(const CaseAnswer& answer, const CaseAnswer& expected) {
  std::string text;
  const auto compare = [&text](std::string_view what, std::int64_t is, std::int64_t should_be) {
    if (is == should_be) return;
    text += fmt::format("{}{} {}, expected {}", text.empty() ? "" : "; ", what, is, should_be);
  };
  compare("end_us", answer.end_us, expected.end_us);
  compare("steps", answer.steps, expected.steps);
  compare("peak_kv_blocks", answer.peak_kv_blocks, expected.peak_kv_blocks);
  compare("requests", static_cast<std::int64_t>(answer.requests.size()),
          static_cast<std::int64_t>(expected.requests.size()));
  const std::size_t both = std::min(answer.requests.size(), expected.requests.size());
  for (std::size_t i = 0; i < both; ++i) {
    const CaseAnswer::Request& is = answer.requests[i];
    const CaseAnswer::Request& should_be = expected.requests[i];
    if (is == should_be) continue;
    const std::string of = fmt::format("request {} ", i);
    compare(of + "first_token_us", is.first_token_us, should_be.first_token_us);
    compare(of + "last_token_us", is.last_token_us, should_be.last_token_us);
    compare(of + "preemptions", is.preemptions, should_be.preemptions);
    compare(of + "longest_gap_us", is.longest_gap_us, should_be.longest_gap_us);
    break;
  }
  return text;
}

}  // namespace

std::vector<ComputedCase> compute(const std::vector<SchedulerCase>& cases) {
  std::vector<ComputedCase> computed;
  for (const SchedulerCase& given : cases) {
    ComputedCase& result = computed.emplace_back();
    result.id = given.id;
    result.expected = given.expected;
    try {
      result.answer = answer_of(given);
    } catch (const ServingStuck& stuck) {
      result.stuck = stuck.what();
    }
  }
  return computed;
}

std::string cases_report(const std::vector<ComputedCase>& cases) {
  std::size_t expected = 0;
  std::size_t wrong = 0;
  std::string list;
  for (const ComputedCase& result : cases) {
    if (result.expected) ++expected;
    const bool is_shown = !result.as_expected() || !result.stuck.empty();
    if (!result.as_expected()) ++wrong;
    if (!is_shown || std::count(list.begin(), list.end(), '\n') >= std::ptrdiff_t{kListedCases}) {
      continue;
    }
    list += fmt::format(
        "  {}: {}\n", result.id,
        result.stuck.empty() ? difference(result.answer, *result.expected) : result.stuck);
  }
  return fmt::format("{} cases: {} as expected, {} not, {} without an expected answer\n{}",
                     cases.size(), expected - wrong, wrong, cases.size() - expected, list);
}

std::string cases_json(const std::vector<ComputedCase>& cases) {
  std::string text = "{\n  \"cases\": [";
  for (const ComputedCase& result : cases) {
    text += fmt::format(
        "{}\n    {{\"id\": {}, {}, \"as_expected\": {}}}", text.back() == '[' ? "" : ",", result.id,
        result.stuck.empty() ? answer_json(result.answer)
                             : fmt::format("\"stuck\": \"{}\"", json_escaped(result.stuck)),
        !result.expected       ? "null"
        : result.as_expected() ? "true"
                               : "false");
  }
  return text + "\n  ]\n}\n";
}

ExitStatus status_of(const std::vector<ComputedCase>& cases) {
  const bool all = std::all_of(cases.begin(), cases.end(),
                               [](const ComputedCase& result) { return result.as_expected(); });
  return all ? ExitStatus::kDone : ExitStatus::kNo;
}

}  // namespace stepsim
