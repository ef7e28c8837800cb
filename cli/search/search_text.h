// What `stepsim search` prints.

#pragma once

#include <optional>
#include <string>

#include "cli/search/search_answer.h"

namespace stepsim {

std::string search_report(const SearchRequest& request, const SearchResult& result,
                          const Refinement& refinement, const std::optional<PlanVerdict>& why,
                          bool color);

}  // namespace stepsim
