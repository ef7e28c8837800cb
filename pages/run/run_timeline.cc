#include "pages/run/run_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "pages/run/gantt.h"
#include "pages/run/memory_curves.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

// "3" of "F 3", "7/3" of "F 7 + B 3"; other names as they are.
std::string number_of_pass(const std::string& name) {
  std::string numbers;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t digit = name.find_first_of("0123456789", at);
    if (digit == std::string::npos) break;
    const std::size_t end = std::min(name.find_first_not_of("0123456789", digit), name.size());
    numbers += (numbers.empty() ? "" : "/") + name.substr(digit, end - digit);
    at = end;
  }
  return numbers.empty() ? name : numbers;
}

}  // namespace

TimelinePlot run_timeline(const FinishedRun& run) {
  const Json chart = gantt(run);
  const Json memory = memory_curves(run);
  const double tick_s = chart["tick_s"].get<double>();
  const auto time_at = [tick_s](const Json& ticks) {
    const double ps = ticks.get<double>() * tick_s * kPicosecondsPerSecond;
    return Time{Duration(std::llround(ps))};
  };
  TimelinePlot plot;
  plot.title = run.experiment.name;
  plot.end = run.result.end;
  for (const Json& rank : chart["ranks"]) {
    PlottedRank row;
    row.name = rank["name"].get<std::string>();
    for (const Json& gap : rank["gaps"]) {
      PlottedSlice& slice = row.slices.emplace_back();
      slice.from = time_at(gap[0]);
      slice.to = slice.from + (time_at(gap[1]) - Time{});
      slice.role = ColourRole::kWaiting;
    }
    for (const Json& pass : rank["passes"]) {
      PlottedSlice& slice = row.slices.emplace_back();
      slice.from = time_at(pass[0]);
      slice.to = slice.from + (time_at(pass[1]) - Time{});
      slice.label = number_of_pass(chart["texts"][pass[2].get<std::size_t>()].get<std::string>());
      slice.role = role_named(chart["phases"][pass[3].get<std::size_t>()].get<std::string>())
                       .value_or(ColourRole::kOtherCompute);
    }
    for (const Json& curve : memory["ranks"]) {
      if (curve["name"] != rank["name"]) continue;
      for (std::size_t i = 0; i < curve["at"].size(); ++i) {
        double held = 0;
        for (const Json& category : curve["held"]) held += category[i].get<double>();
        row.holds.emplace_back(time_at(curve["at"][i]), held);
      }
    }
    plot.ranks.push_back(std::move(row));
  }
  const MemoryPeak& peak = run.result.memory_peaks[run.result.peak_rank.index()];
  plot.holds = "memory, up to " + to_text(peak.bytes);
  return plot;
}

}  // namespace stepsim
