// result_page() is the report of a saved result, whatever command wrote it: its JSON alone says all
// that the page shows. Only a run's page needs the run itself (pages/run_page.h).

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/messages/json_value.h"

namespace stepsim {

enum class ResultKind {
  kRun,
  kSearch,
  kServe,
  kServeSearch,
  kCompare,
  kAccuracy,
  kGoodput,
  kDiff,
  kSweep
};

// Returns which command wrote a result, by the members that only its results have. Returns nullopt
// for anything else.
std::optional<ResultKind> kind_of_result(const Json& result);

std::string_view command_of(ResultKind kind);  // "run"

// Returns the commands that write results with a page, for a message: "run", "search", ...
std::vector<std::string> commands_with_pages();

// Throws ConfigError with the members that aren't those of such a result. REQUIRES: not kRun.
std::string result_page(ResultKind kind, const Json& result);

// The pages, one a command.
std::string search_page(const Json& result);
std::string serve_page(const Json& result);
std::string serve_search_page(const Json& result);
std::string compare_page(const Json& result);
std::string accuracy_page(const Json& result);
std::string goodput_page(const Json& result);
std::string diff_page(const Json& result);
std::string sweep_page(const Json& result);

}  // namespace stepsim
