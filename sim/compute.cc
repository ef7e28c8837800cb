#include "sim/compute.h"

#include <algorithm>
#include <cmath>

namespace stepsim {

ComputeRuns::ComputeRuns(const OpGraph& graph, const ChipSpec& chip)
    : graph_(graph),
      cost_(chip.communication),
      holds_shares_(cost_.compute_share > 0 || cost_.memory_share > 0),
      kernels_(graph.compute_works.size()),
      durations_(graph.compute_works.size()),
      flops_(graph.compute_works.size()),
      states_(graph.ranks.size()) {
  for (std::size_t work = 0; work < graph.compute_works.size(); ++work) {
    Duration total{};
    for (const Kernel& kernel : graph.compute_works[work].kernels) {
      kernels_[work].push_back(time_of(kernel, chip));
      total += kernels_[work].back().total;
      flops_[work] += kernel.flops;
    }
    durations_[work].push_back(total);
  }
}

Time ComputeRuns::start(std::uint32_t rank, std::uint32_t work, double factor, Time now) {
  State& state = states_[rank];
  state.work = work;
  state.left = 1;
  state.factor = graph_.ranks[rank].slowdown * factor;
  state.since = now;
  state.running = true;
  state.ends_at = now + pace(state, state.communicating);
  return state.ends_at;
}

bool ComputeRuns::change_communication(std::uint32_t rank, int change, Time now) {
  State& state = states_[rank];
  const std::uint32_t before = state.communicating;
  state.communicating += static_cast<std::uint32_t>(change);
  if (!state.running || state.ends_at == now) return false;
  const Duration old_pace = pace(state, before);
  const Duration new_pace = pace(state, state.communicating);
  if (old_pace == new_pace) return false;
  if (state.since < now) {
    state.left -=
        static_cast<double>((now - state.since).count()) / static_cast<double>(old_pace.count());
    state.since = now;
  }
  const double rest = std::max(0.0, state.left) * static_cast<double>(new_pace.count());
  const Time ends_at = now + Duration(static_cast<std::int64_t>(std::ceil(rest)));
  if (ends_at == state.ends_at) return false;
  state.ends_at = ends_at;
  return true;
}

Duration ComputeRuns::pace(const State& state, std::uint32_t communicating) {
  std::vector<Duration>& durations = durations_[state.work];
  while (durations.size() <= communicating) {
    const auto ops = static_cast<double>(durations.size());
    const CommunicationCost taken{.compute_share = std::min(kMostTaken, ops * cost_.compute_share),
                                  .memory_share = std::min(kMostTaken, ops * cost_.memory_share)};
    Duration total{};
    for (const KernelTime& kernel : kernels_[state.work]) total += slowed(kernel, taken);
    durations.push_back(total);
  }
  const Duration alone = durations[communicating];
  if (state.factor == 1) return alone;
  return Duration(
      static_cast<std::int64_t>(std::ceil(static_cast<double>(alone.count()) * state.factor)));
}

}  // namespace stepsim
