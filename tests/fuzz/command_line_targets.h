// Fuzz targets of what is typed on a command line.

#pragma once

#include <string_view>

namespace stepsim {

void read_plan_keys(std::string_view input);       // the value of --plan
void read_overrides(std::string_view input);       // a line is a value of --set
void read_sweep_axes(std::string_view input);      // a line is a value of --over
void read_result_store(std::string_view input);    // the file of --store
void read_formula_words(std::string_view input);   // words of `stepsim formula`
void read_schedule_words(std::string_view input);  // words of `stepsim schedule`
void read_expert_routing(std::string_view input);  // members, members of a node, --routing
void read_ranks(std::string_view input);           // the value of --ranks

}  // namespace stepsim
