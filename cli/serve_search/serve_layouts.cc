#include "cli/serve_search/serve_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "experiment/build_cluster.h"
#include "proto/catalog/serving_software.h"
#include "proto/load_experiment.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

// Returns "8" of dp in "tp=1,dp=8"; "1" without it.
std::string ranks_of(std::string_view plan) {
  for (const std::string_view part : split_text(plan, ',')) {
    if (part.starts_with("dp=")) return std::string(part.substr(3));
  }
  return "1";
}

}  // namespace

std::vector<std::string> layouts_for(bool has_experts, std::int64_t chips) {
  std::vector<std::string> layouts;
  for (std::int64_t ranks = 1; ranks <= chips; ranks *= 2) {
    for (std::int64_t pp = 1; pp <= std::min<std::int64_t>(ranks, 4); pp *= 2) {
      const std::int64_t tp = ranks / pp;
      const std::string stages = pp > 1 ? fmt::format(",pp={}", pp) : "";
      layouts.push_back(fmt::format("tp={}{}", tp, stages));
      if (!has_experts || tp == 1) continue;
      layouts.push_back(fmt::format("tp={},ep={},etp=1{}", tp, tp, stages));
      for (std::int64_t own = 1; own < tp; own *= 2) {
        layouts.push_back(fmt::format("tp={},dp={},ep={}{}", own, tp / own, tp, stages));
      }
    }
  }
  return layouts;
}

std::vector<ServedLayout> load_layouts(const LayoutSource& source,
                                       std::vector<std::string>& refused) {
  const ModelSpec model = load_model(source.model);
  const ClusterSpec spec = load_cluster(source.cluster, source.library, source.chip);
  const Cluster cluster = build_cluster(spec);
  const auto software = software_of(source.software, source.engine);
  std::string library = source.library;
  if (software && library.empty()) {
    const auto own = software->libraries.find(spec.library.name);
    if (own != software->libraries.end()) library = own->second;
  }
  const auto all = static_cast<std::int64_t>(cluster.places.chips.size());
  if (source.most_chips > all) {
    throw ConfigError({{"--chips", fmt::format("must be at most {}, the chips of {}, is {}", all,
                                               source.cluster, source.most_chips)}});
  }
  const std::int64_t chips = source.most_chips == 0 ? all : source.most_chips;
  std::vector<std::string> plans = layouts_for(model.experts.routed > 0, chips);
  if (!source.layouts.empty()) {
    plans.clear();
    for (const std::string_view plan : split_text(source.layouts, ';')) plans.emplace_back(plan);
  }
  std::vector<ServedLayout> layouts;
  std::vector<Problem> problems;
  for (const std::string& plan : plans) {
    const std::string whole = source.plan.empty() ? plan : plan + "," + source.plan;
    const std::string keys = fmt::format(
        "inference=decode,context=2,batch={},allow_idle_chips=true,{}", ranks_of(plan), whole);
    try {
      layouts.push_back({plan, load_experiment(with_keys({.model = source.model,
                                                          .cluster = source.cluster,
                                                          .chip = source.chip,
                                                          .library = library},
                                                         keys))});
      if (software) {
        prefer_kernels_of(*software, layouts.back().experiment.cluster.chip.serving);
      }
    } catch (const ConfigError& error) {
      const Problem& first = error.problems().front();
      refused.push_back(plan + ": " + first.field + " " + first.message);
      problems.push_back({"--layouts " + plan, first.field + ": " + first.message});
    }
  }
  if (layouts.empty()) throw ConfigError(std::move(problems));
  return layouts;
}

}  // namespace stepsim
