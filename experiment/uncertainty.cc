#include "experiment/uncertainty.h"

#include <algorithm>

namespace stepsim {
namespace {

bool agrees(std::optional<bool> said, bool is) {
  return !said || *said == is;
}

bool holds(const IntervalEntry& entry, PredictedMetric metric, const Situation& situation) {
  return entry.metric == metric && agrees(entry.own_kernels, situation.own_kernels) &&
         agrees(entry.experts, situation.experts) &&
         agrees(entry.across_nodes, situation.across_nodes) &&
         agrees(entry.narrow, situation.narrow);
}

}  // namespace

Situation situation_of(const Experiment& experiment, std::uint32_t chips_per_node) {
  constexpr std::int64_t kHalfPrecision = 16;
  return {.own_kernels = experiment.cluster.chip.kernel_constants_of.empty(),
          .experts = experiment.model.experts.routed > 0,
          .across_nodes = experiment.plan.ranks() > std::int64_t{chips_per_node},
          .narrow = bits_of(experiment.plan.type) < kHalfPrecision};
}

std::string text_of(const Situation& situation) {
  return std::string(situation.own_kernels ? "own kernels" : "kernels of a sister") + ", " +
         (situation.experts ? "experts" : "dense") + ", " +
         (situation.across_nodes ? "across nodes" : "in a node") + ", " +
         (situation.narrow ? "narrow" : "16 bits");
}

std::optional<Interval> interval_of(const std::vector<IntervalEntry>& entries,
                                    PredictedMetric metric, const Situation& situation,
                                    double predicted) {
  const auto found = std::ranges::find_if(
      entries, [&](const IntervalEntry& entry) { return holds(entry, metric, situation); });
  if (found == entries.end()) return std::nullopt;
  return Interval{.low = found->low * predicted, .high = found->high * predicted};
}

}  // namespace stepsim
