// What-if findings as a table and as a picture.

#pragma once

#include <string>
#include <vector>

#include "cli/run/what_if.h"
#include "traces/pictures/plot_svg.h"

namespace stepsim {

std::string sensitivity_report(const Sensitivity& sensitivity, bool color);
std::string breakeven_report(const Breakeven& breakeven, bool color);

// The largest on top.
Tornado tornado_of(const Sensitivity& sensitivity, const std::string& name);

}  // namespace stepsim
