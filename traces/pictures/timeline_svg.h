// timeline_svg() draws what ranks do over time as an SVG: a row of slices a rank with their
// micro-batches, below it what the rank holds, a legend, and an axis of time.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/palette.h"
#include "sim/base/units.h"

namespace stepsim {

struct PlottedSlice {
  Time from;
  Time to;
  std::string label{};  // drawn where there is room
  ColourRole role = ColourRole::kOtherCompute;
  bool is_pale = false;  // of odd chunks
};

struct PlottedRank {
  std::string name{};
  std::vector<PlottedSlice> slices{};            // by time
  std::vector<std::pair<Time, double>> holds{};  // from a time on; empty: no curve
};

struct TimelinePlot {
  std::string title{};
  std::string holds{};  // what the curves are: "memory, up to 39.9 GB"
  Time end{};
  std::vector<PlottedRank> ranks{};
};

std::string timeline_svg(const TimelinePlot& plot);

}  // namespace stepsim
