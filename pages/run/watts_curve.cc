#include "pages/run/watts_curve.h"

#include <algorithm>
#include <string>
#include <vector>

#include "experiment/energy.h"
#include "pages/run/run_drawings.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostWattLines = 8;
constexpr std::size_t kWattsBins = 400;

// Adds what a chip takes from one instant to another, in joules, to the equal parts of the run.
void spread_joules(double from, double to, double watts, double width, std::vector<double>& bins) {
  auto bin = std::min(static_cast<std::size_t>(from / width), bins.size() - 1);
  for (; bin < bins.size() && width * static_cast<double>(bin) < to; ++bin) {
    const double begin = std::max(from, width * static_cast<double>(bin));
    const double end = std::min(to, width * static_cast<double>(bin + 1));
    bins[bin] += watts * std::max(0.0, end - begin);
  }
}

Json line_of(const std::string& name, const std::vector<WattsSample>& samples, double whole) {
  std::vector<double> joules(kWattsBins, 0);
  const double width = whole / kWattsBins;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const bool is_last = i + 1 == samples.size();
    const double to = is_last ? whole : to_seconds(samples[i + 1].at.since_start);
    spread_joules(to_seconds(samples[i].at.since_start), to, samples[i].watts, width, joules);
  }
  Json line = Json::object();
  line["name"] = name;
  for (std::size_t i = 0; i <= kWattsBins; ++i) {
    line["at"].push_back(rounded(width * static_cast<double>(i)));
    line["values"].push_back(rounded(joules[std::min(i, kWattsBins - 1)] / width));
  }
  return line;
}

}  // namespace

Json watts_curve(const FinishedRun& run) {
  const auto energy = energy_of_kernels(run.experiment, run.cluster, run.graph);
  if (!energy) return nullptr;
  const double whole = to_seconds(run.result.end.since_start);
  Json curve = Json::object();
  curve["end"] = whole;
  curve["y"] = "number";
  curve["lines"] = Json::array();
  for (const std::size_t recorded : drawn_ranks(run, kMostWattLines)) {
    const RecordedRank& rank = run.result.recorded[recorded];
    const std::vector<WattsSample> samples =
        watts_over_time(run.graph, run.result.timelines[rank.timeline], *energy);
    curve["lines"].push_back(
        line_of(name_of_stage(run.graph, run.graph.ranks[rank.rank.index()].pp), samples, whole));
  }
  return curve;
}

}  // namespace stepsim
