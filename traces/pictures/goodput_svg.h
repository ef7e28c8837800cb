// goodput_svg() draws the results of `stepsim goodput` in one picture: a run from its beginning to
// its end, where the time of all runs goes, and goodput by interval and by spares where they were
// asked for.

#pragma once

#include <string>

#include "traces/results/goodput_report.h"

namespace stepsim {

std::string goodput_svg(const GoodputOutcome& outcome);

}  // namespace stepsim
