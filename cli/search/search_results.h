// What `stepsim search` writes: JSON, CSV and a picture.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "books/laboratory/plot.h"
#include "cli/search/search_answer.h"
#include "cli/subcommand.h"

namespace stepsim {

std::string search_json(const SearchRequest& request, const SearchResult& result,
                        const Refinement& refinement, const std::optional<PlanVerdict>& why);
std::vector<CommandResult> search_command_results();

std::string search_csv(const SearchRequest& request, const SearchResult& result);
Plot search_plot(const SearchRequest& request, const SearchResult& result);

}  // namespace stepsim
