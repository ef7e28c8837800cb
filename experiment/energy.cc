#include "experiment/energy.h"

#include <algorithm>

#include "sim/chips/kernel_energy.h"

namespace stepsim {
namespace {

// The chip at the clock of the peaks, as steps of the plan use it, with the mean energy.
ChipSpec mean_chip(const Experiment& experiment) {
  ChipSpec chip = experiment.cluster.chip;
  if (experiment.plan.is_inference()) return chip;
  chip.efficiency = chip.efficiency.in_training(experiment.plan.kernels.attention_library);
  return chip;
}

double seconds_of(const ComputeWork& work, const ChipSpec& chip) {
  Duration total{};
  for (const Kernel& kernel : work.kernels) total += time_of(kernel, chip).total;
  return to_seconds(total);
}

// Returns the energy of all kernels that a rank of the program runs in a step.
double joules_of_program(const Program& program, const KernelEnergy& energy) {
  double joules = 0;
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::kCompute) joules += energy.joules[op.work];
  }
  return joules;
}

double joules_of_kernels(const OpGraph& graph, const KernelEnergy& energy) {
  std::vector<std::int64_t> ranks(graph.programs.size(), 0);
  for (const RankData& rank : graph.ranks) ++ranks[rank.program.index()];
  double joules = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == 0) continue;
    joules += static_cast<double>(ranks[i]) * joules_of_program(graph.programs[i], energy);
  }
  return joules;
}

double most_watts(const OpGraph& graph, const Cluster& cluster, const KernelEnergy& energy) {
  double most = 0;
  for (std::size_t i = 0; i < energy.joules.size(); ++i) {
    const double seconds = seconds_of(graph.compute_works[i], cluster.chip);
    if (seconds > 0) most = std::max(most, energy.joules[i] / seconds);
  }
  return energy.idle_watts + most;
}

}  // namespace

std::optional<KernelEnergy> energy_of_kernels(const Experiment& experiment, const Cluster& cluster,
                                              const OpGraph& graph) {
  const std::optional<PowerLimit>& power = experiment.cluster.chip.power;
  if (!power || power->joules_per_teraflop == 0) return std::nullopt;
  const ChipSpec chip = mean_chip(experiment);
  const double budget = chip.power->limit_watts - chip.power->idle_watts;
  KernelEnergy energy{.idle_watts = chip.power->idle_watts};
  for (const ComputeWork& work : graph.compute_works) {
    double joules = 0;
    for (const Kernel& kernel : work.kernels) {
      const double seconds = to_seconds(time_of(kernel, cluster.chip).total);
      joules += std::min(joules_of(kernel, chip), budget * seconds);
    }
    energy.joules.push_back(joules);
  }
  return energy;
}

std::optional<StepEnergy> energy_of_step(const Experiment& experiment, const Cluster& cluster,
                                         const OpGraph& graph, const SimulationResult& result) {
  const std::optional<KernelEnergy> kernels = energy_of_kernels(experiment, cluster, graph);
  if (!kernels) return std::nullopt;
  const BatchShape& batch = experiment.plan.batch;
  const auto ranks = static_cast<double>(graph.ranks.size());
  const double seconds = to_seconds(result.step_time);
  const double joules = ranks * seconds * kernels->idle_watts + joules_of_kernels(graph, *kernels);
  return StepEnergy{
      .joules = joules,
      .joules_per_token = joules / static_cast<double>(batch.global_batch * batch.sequence),
      .mean_watts_per_chip = joules / (ranks * seconds),
      .peak_watts_per_chip = most_watts(graph, cluster, *kernels),
      .idle_watts_per_chip = kernels->idle_watts};
}

std::vector<WattsSample> watts_over_time(const OpGraph& graph, const Timeline& timeline,
                                         const KernelEnergy& energy) {
  const Program& program = graph.programs[graph.ranks[timeline.rank.index()].program.index()];
  std::vector<WattsSample> samples{{.at = Time(), .watts = energy.idle_watts}};
  const auto draws = [&samples](Time at, double watts) {
    if (samples.back().at == at) samples.pop_back();
    if (samples.empty() || samples.back().watts != watts) samples.push_back({at, watts});
  };
  for (const TimelineOp& entry : timeline.ops) {
    const Op& op = program.ops[entry.op];
    if (op.kind != OpKind::kCompute || entry.ended == entry.started) continue;
    const double seconds = to_seconds(entry.ended - entry.started);
    draws(entry.started, energy.idle_watts + energy.joules[op.work] / seconds);
    draws(entry.ended, energy.idle_watts);
  }
  return samples;
}

}  // namespace stepsim
