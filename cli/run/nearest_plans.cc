#include "cli/run/nearest_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "schedules/plan/keys/key_groups.h"
#include "search/search.h"
#include "sim/base/parallel.h"
#include "traces/results/report_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kNearest = 3;
constexpr std::uint64_t kMostSimulated = 8;

// "zero=3, recompute=full, dp=8"
std::string changes(const ParallelPlan& plan, const ParallelPlan& from) {
  std::string text;
  for (const FieldValue& value : changed_keys(plan, from)) {
    text += (text.empty() ? "" : ", ") + value.path + "=" + value.text;
  }
  return text;
}

std::vector<Dimension> space_around(const ParallelPlan& plan) {
  const auto doubled = [](std::int64_t size) {
    return std::vector<std::string>{std::to_string(size), std::to_string(2 * size)};
  };
  std::vector<Dimension> dimensions = {
      {"tp", doubled(plan.mesh.tp)},
      {"cp", doubled(plan.mesh.cp)},
      {"pp", doubled(plan.mesh.pp)},
      {"zero", {}},
      {"microbatch", {std::to_string(plan.batch.microbatch_size)}}};
  for (int zero = plan.state.zero; zero <= 3; ++zero) {
    dimensions[3].values.push_back(std::to_string(zero));
  }
  if (plan.batch.microbatch_size > 1) dimensions[4].values.emplace_back("1");
  if (plan.recomputing.kind == Recompute::kNone) {
    dimensions.push_back({"recompute", {"none", "selective", "full"}});
  }
  return dimensions;
}

}  // namespace

std::string nearest_plans(const Experiment& experiment, const Places& places) {
  std::vector<SearchPlace> around;
  around.push_back({.base = experiment,
                    .places = places,
                    .space = SearchSpace(space_around(experiment.plan), true)});
  around.front().base.variation = {};
  const SearchResult result = search_plans(around, {.top = kNearest,
                                                    .threads = threads_of_machine(),
                                                    .most_simulated = kMostSimulated,
                                                    .front = FrontEffort::kNone});
  const bool fits = !result.best.empty();
  const std::vector<FoundPlan>& listed = fits ? result.best : result.nearest;
  if (listed.empty()) return "";
  const auto gigabytes = [](Bytes bytes) { return static_cast<double>(bytes.value()) / 1e9; };
  ReportText text(false);
  text.section(fits ? "Plans near it that fit" : "Plans near it that need least");
  for (const FoundPlan& found : listed) {
    text.line("  {:>9.3f} s  {:>5.1f} GB  {}", to_seconds(found.step), gigabytes(found.peak),
              changes(found.plan, experiment.plan));
  }
  if (!fits) {
    const Bytes capacity = experiment.cluster.chip.memory_capacity;
    text.line(
        "  None of them fits: the first needs {:.1f} GB more than a chip has. More chips, or chips",
        gigabytes(listed.front().peak - capacity));
    text.line("  with more memory, would; stepsim search --minimize chips says how many.");
  }
  return text.text();
}

}  // namespace stepsim
