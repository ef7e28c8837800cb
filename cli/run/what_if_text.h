// What-if findings as a table, as members of a result's JSON, and as a picture.

#pragma once

#include <string>
#include <vector>

#include "cli/run/what_if.h"
#include "traces/pictures/plot_svg.h"

namespace stepsim {

std::string sensitivity_report(const Sensitivity& sensitivity, bool color);
std::string breakeven_report(const Breakeven& breakeven, bool color);

// "sensitivity": [{name, fields, value, less_10_percent_step_time_s, more_10_percent_step_time_s,
// slope, path_changes [less, more], fits [less, more]}...], "slopes_held": the fraction of the path
// whose parts of links the slopes hold. A slope that isn't known is null; then there is no
// slopes_held.
std::string sensitivity_json(const Sensitivity& sensitivity);
// "breakeven": {name, factor, value, step_time_s, step_time_there_s, step_time_endless_s}
std::string breakeven_json(const Breakeven& breakeven);

// The largest on top.
Tornado tornado_of(const Sensitivity& sensitivity, const std::string& name);

}  // namespace stepsim
