#include "cli/serve/serve_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "traces/results/result_table.h"

namespace stepsim {
namespace {

constexpr std::size_t kListedCases = 20;

const ResultTable<CaseAnswer::Request>& request_of_case_results() {
  static const ResultTable<CaseAnswer::Request> kTable = [] {
    using Request = CaseAnswer::Request;
    ResultTable<Request> table;
    table.add("first_token_us", &Request::first_token_us, {"from the start", "us"});
    table.add("last_token_us", &Request::last_token_us, {"from the start", "us"});
    table.add("preemptions", &Request::preemptions, {"of the request"});
    table.add("longest_gap_us", &Request::longest_gap_us, {"between two tokens", "us"});
    return table;
  }();
  return kTable;
}

const ResultTable<CaseAnswer>& answer_of_case_results() {
  static const ResultTable<CaseAnswer> kTable = [] {
    constexpr std::string_view kEnds = "where the case ends";
    ResultTable<CaseAnswer> table;
    table.add("end_us", &CaseAnswer::end_us, {"of the last request", "us", kEnds});
    table.add("steps", &CaseAnswer::steps, {"of the engine", "", kEnds});
    table.add("peak_kv_blocks", &CaseAnswer::peak_kv_blocks,
              {"the most that were used at once", "", kEnds});
    table.list("requests", request_of_case_results(), &CaseAnswer::requests,
               {"in the order of the case", "", kEnds});
    return table;
  }();
  return kTable;
}

const ResultTable<ComputedCase>& case_results() {
  static const ResultTable<ComputedCase> kTable = [] {
    ResultTable<ComputedCase> table;
    table.add("id", [](const ComputedCase& one) { return RawJson{one.id}; }, {"as in the file"});
    table.include(answer_of_case_results(), [](const ComputedCase& one) {
      return one.stuck.empty() ? &one.answer : nullptr;
    });
    table.add("stuck", [](const ComputedCase& one) { return given(one.stuck); },
              {"why there is no answer", "", "where the case never ends"});
    table.add("as_expected",
              [](const ComputedCase& one) {
                return OrNull{one.expected ? std::optional(one.as_expected()) : std::nullopt};
              },
              {"null where the case says no answer"});
    return table;
  }();
  return kTable;
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

const ResultTable<std::vector<ComputedCase>>& cases_results() {
  static const ResultTable<std::vector<ComputedCase>> kTable = [] {
    ResultTable<std::vector<ComputedCase>> table;
    table.list("cases", case_results(), std::identity{}, {"in the order of the file"});
    return table;
  }();
  return kTable;
}

ExitStatus status_of(const std::vector<ComputedCase>& cases) {
  const bool all = std::all_of(cases.begin(), cases.end(),
                               [](const ComputedCase& result) { return result.as_expected(); });
  return all ? ExitStatus::kDone : ExitStatus::kNo;
}

}  // namespace stepsim
