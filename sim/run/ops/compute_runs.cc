#include "sim/run/ops/compute_runs.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace stepsim {
namespace {

double fraction(std::int32_t millionths) {
  return std::min(ChipShare::kMost, millionths / 1e6);
}

}  // namespace

ComputeRuns::ComputeRuns(const Job& job, const ChipSpec& chip)
    : job_(job),
      margin_(chip.communication.margin == 0 ? 0
                                             : static_cast<double>(chip.communication.margin) /
                                                   static_cast<double>(chip.communication.units)),
      kernels_(job.graph().compute_works.size()),
      durations_(kernels_.size()),
      flops_(kernels_.size()),
      states_(job.ranks().size()) {
  for (std::size_t work = 0; work < kernels_.size(); ++work) {
    Duration total{};
    for (const Kernel& kernel : job.graph().compute_works[work].kernels) {
      kernels_[work].push_back(time_of(kernel, chip));
      total += kernels_[work].back().total;
      flops_[work] += kernel.flops;
    }
    durations_[work].push_back({.taken = {}, .duration = total});
  }
}

Time ComputeRuns::start(RankId rank, ComputeWorkId work, double factor, Time now) {
  State& state = states_[rank.index()];
  state.work = work;
  state.left = 1;
  state.factor = job_.ranks()[rank.index()].slowdown * factor;
  state.since = now;
  state.running = true;
  state.ends_at = now + pace(state, state.taken);
  return state.ends_at;
}

bool ComputeRuns::change_communication(RankId rank, ChipShare share, int change, Time now) {
  if (share == ChipShare{}) return false;
  State& state = states_[rank.index()];
  const ChipShare before = state.taken;
  state.taken.compute += change * share.compute;
  state.taken.memory += change * share.memory;
  if (!state.running || state.ends_at == now) return false;
  const Duration old_pace = pace(state, before);
  const Duration new_pace = pace(state, state.taken);
  if (old_pace == new_pace) return false;
  if (state.since < now) {
    state.left -=
        static_cast<double>((now - state.since).count()) / static_cast<double>(old_pace.count());
    state.since = now;
  }
  const double rest = std::max(0.0, state.left) * static_cast<double>(new_pace.count());
  const Time ends_at = now + duration_from_picoseconds(rest);
  if (ends_at == state.ends_at) return false;
  state.ends_at = ends_at;
  return true;
}

Duration ComputeRuns::pace(const State& state, ChipShare taken) {
  std::vector<Pace>& paces = durations_[state.work.index()];
  auto found = std::ranges::find(paces, taken, &Pace::taken);
  if (found == paces.end()) {
    // As a fraction of the units that kernels use.
    const double more = std::max(0.0, fraction(taken.compute) - margin_) / (1 - margin_);
    const CommunicationCost cost{.compute_share = std::min(ChipShare::kMost, more),
                                 .memory_share = fraction(taken.memory)};
    Duration total{};
    for (const KernelTime& kernel : kernels_[state.work.index()]) total += slowed(kernel, cost);
    paces.push_back({.taken = taken, .duration = total});
    found = std::prev(paces.end());
  }
  const Duration without_jitter = found->duration;
  if (state.factor == 1) return without_jitter;
  return duration_from_picoseconds(static_cast<double>(without_jitter.count()) * state.factor);
}

}  // namespace stepsim
