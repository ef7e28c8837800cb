#include "pages/run/run_drawings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "pages/run/cluster_drawing.h"
#include "pages/run/gantt.h"
#include "pages/run/kernel_roofline.h"
#include "pages/run/link_loads.h"
#include "pages/run/memory_curves.h"
#include "pages/run/rank_times.h"
#include "pages/run/watts_curve.h"
#include "workload/model_counts.h"

namespace stepsim {

DrawnTime::DrawnTime(Duration whole) {
  constexpr std::int64_t kMostTicks = 2'000'000;
  while (whole.count() / tick_ps_ > kMostTicks) tick_ps_ *= 10;
}

double rounded(double number) {
  return std::isfinite(number) ? std::stod(fmt::format("{:.5g}", number)) : 0;
}

std::vector<std::size_t> drawn_ranks(const FinishedRun& run, std::size_t most) {
  std::map<std::uint32_t, std::size_t> by_stage;
  for (std::size_t i = 0; i < run.result.recorded.size(); ++i) {
    by_stage.emplace(run.graph.ranks[run.result.recorded[i].rank.index()].pp, i);
  }
  std::vector<std::size_t> all;
  for (const auto& [stage, recorded] : by_stage) all.push_back(recorded);
  if (all.size() <= most) return all;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < most; ++i) {
    chosen.push_back(all[i * (all.size() - 1) / (most - 1)]);
  }
  return chosen;
}

Json run_drawings(const FinishedRun& run) {
  Json drawings = Json::object();
  drawings["chip"] = run.cluster.chip.name;
  drawings["parameters"] = parameter_count(run.experiment.model);
  drawings["active_parameters"] = active_parameter_count(run.experiment.model);
  drawings["stages"] = stage_times(run);
  drawings["ranks"] = rank_times(run);
  drawings["gantt"] = gantt(run);
  drawings["memory"] = memory_curves(run);
  drawings["watts"] = watts_curve(run);
  drawings["links"] = link_loads(run);
  drawings["cluster"] = cluster_drawing(run);
  drawings["kernels"] = kernel_roofline(run);
  return drawings;
}

}  // namespace stepsim
