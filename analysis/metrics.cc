#include "analysis/metrics.h"

namespace stepsim {

std::string_view name_of(AttentionFlops convention) {
  return convention == AttentionFlops::kCausal ? "causal" : "full";
}

StepMetrics measure(const Experiment& experiment, const SimulationResult& result,
                    AttentionFlops convention) {
  const ParallelPlan& plan = experiment.plan;
  StepMetrics metrics;
  metrics.step_time = result.step_time;
  metrics.convention = convention;
  metrics.chips = plan.ranks();
  metrics.peak_per_chip = experiment.cluster.chip.peak_of(plan.type);
  metrics.model_flops = model_flops(experiment.model, plan.global_batch, plan.sequence, convention);

  const double seconds = to_seconds(result.step_time);
  const auto chips = static_cast<double>(metrics.chips);
  metrics.tokens_per_s = static_cast<double>(plan.global_batch * plan.sequence) / seconds;
  metrics.tokens_per_s_per_chip = metrics.tokens_per_s / chips;
  const double available_flops = seconds * chips * metrics.peak_per_chip.value();
  metrics.model_flops_utilization = metrics.model_flops / available_flops;
  metrics.hardware_flops_utilization = result.flops.value() / available_flops;
  return metrics;
}

std::vector<std::uint32_t> idle_chips(const OpGraph& graph, const Cluster& cluster) {
  std::vector<bool> used(cluster.places.chips.size(), false);
  for (const RankData& rank : graph.ranks) used[rank.chip] = true;
  std::vector<std::uint32_t> idle;
  for (std::uint32_t chip = 0; chip < used.size(); ++chip) {
    if (!used[chip]) idle.push_back(chip);
  }
  return idle;
}

}  // namespace stepsim
