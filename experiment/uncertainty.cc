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
  return situation_of(experiment, experiment.plan.mesh.ranks(), experiment.plan.precision.type,
                      chips_per_node);
}

Situation situation_of(const Experiment& experiment, std::int64_t ranks, DataType matmul,
                       std::uint32_t chips_per_node) {
  constexpr std::int64_t kHalfPrecision = 16;
  return {.own_kernels = experiment.cluster.chip.kernel_constants_of.empty(),
          .experts = experiment.model.experts.routed > 0,
          .across_nodes = ranks > std::int64_t{chips_per_node},
          .narrow = bits_of(matmul) < kHalfPrecision};
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
  Interval interval{.low = found->low * predicted, .high = found->high * predicted};
  if (found->median) interval.median = *found->median * predicted;
  return interval;
}

std::optional<double> telling_median(const Interval& interval, double predicted) {
  const double quarter = (interval.high - interval.low) / 4;
  const bool in_the_middle =
      interval.low + quarter <= predicted && predicted <= interval.high - quarter;
  if (!interval.median || in_the_middle) return std::nullopt;
  return *interval.median / predicted;
}

std::string_view name_of(FitCertainty certainty) {
  switch (certainty) {
    case FitCertainty::kNo:
      return "no";
    case FitCertainty::kLikely:
      return "likely";
    case FitCertainty::kSure:
      break;
  }
  return "sure";
}

FitCertainty certainty_of(Bytes peak, const std::optional<Interval>& interval, Bytes capacity) {
  if (peak > capacity) return FitCertainty::kNo;
  return leaves({}, peak, interval, capacity) ? FitCertainty::kSure : FitCertainty::kLikely;
}

bool leaves(const Headroom& headroom, Bytes peak, const std::optional<Interval>& interval,
            Bytes capacity) {
  const auto all = static_cast<double>(capacity.value());
  if (headroom.share) return static_cast<double>(peak.value()) <= (1 - *headroom.share) * all;
  return peak <= capacity && (!interval || interval->high <= all);
}

Bytes largest_peak(const Headroom& headroom, const std::optional<Interval>& of_one,
                   Bytes capacity) {
  const auto all = static_cast<double>(capacity.value());
  double most = all;
  if (headroom.share) {
    most = (1 - *headroom.share) * all;
  } else if (of_one) {
    most = std::min(all, all / of_one->high);
  }
  return Bytes(static_cast<std::int64_t>(most) + 1);
}

}  // namespace stepsim
