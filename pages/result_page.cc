#include "pages/result_page.h"

#include <array>
#include <stdexcept>
#include <string_view>

namespace stepsim {
namespace {

struct KindOfResult {
  ResultKind kind;
  std::string_view command;
  std::array<std::string_view, 2> members;  // that all of its results have, and no others
  std::string (*page)(const Json&);         // nullptr: kRun
};

constexpr std::array<KindOfResult, 9> kKindsOfResults = {{
    {ResultKind::kRun, "run", {"step_time_s", "breakdown_s"}, nullptr},
    {ResultKind::kSearch, "search", {"best", "bound_gap"}, search_page},
    {ResultKind::kServe, "serve", {"ttft_s", "kv_blocks"}, serve_page},
    {ResultKind::kServeSearch, "serve-search", {"points", "fewest_chips"}, serve_search_page},
    {ResultKind::kCompare, "compare", {"runs", "explained"}, compare_page},
    {ResultKind::kAccuracy, "accuracy", {"rows", "summary"}, accuracy_page},
    {ResultKind::kGoodput, "goodput", {"days", "parts_days"}, goodput_page},
    {ResultKind::kDiff, "diff", {"step_s", "by_kind"}, diff_page},
    {ResultKind::kSweep, "sweep", {"points", "paths"}, sweep_page},
}};

}  // namespace

std::optional<ResultKind> kind_of_result(const Json& result) {
  if (!result.is_object()) return std::nullopt;
  for (const KindOfResult& one : kKindsOfResults) {
    if (result.contains(one.members[0]) && result.contains(one.members[1])) return one.kind;
  }
  return std::nullopt;
}

std::string_view command_of(ResultKind kind) {
  for (const KindOfResult& one : kKindsOfResults) {
    if (one.kind == kind) return one.command;
  }
  throw std::logic_error("a kind of result without a command");
}

std::vector<std::string> commands_with_pages() {
  std::vector<std::string> commands;
  for (const KindOfResult& one : kKindsOfResults) commands.emplace_back(one.command);
  return commands;
}

std::string result_page(ResultKind kind, const Json& result) {
  for (const KindOfResult& one : kKindsOfResults) {
    if (one.kind == kind && one.page != nullptr) return one.page(result);
  }
  throw std::logic_error("a run's page is made by run_page()");
}

}  // namespace stepsim
