// A search whose plans several processes simulate.

#pragma once

#include <string>
#include <vector>

#include "cli/processes/process_group.h"
#include "cli/search/search_options.h"

namespace stepsim {

// Adds the others of a group to the helpers of a search. REQUIRES: this is the first process.
void add_helpers(ProcessGroup& group, const std::vector<std::string>& arguments,
                 SearchOptions& options);

// Simulates plans for another process until that one ends.
void simulate_plans_for(ProcessGroup& group, const std::vector<std::string>& arguments);

}  // namespace stepsim
