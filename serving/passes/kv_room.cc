#include "serving/passes/kv_room.h"

#include <algorithm>
#include <cmath>

#include "experiment/simulate_experiment.h"
#include "schedules/plan/plan_schedule.h"
#include "workload/inference.h"

namespace stepsim {
Bytes cache_of_token(const ModelSpec& model, const ParallelPlan& plan) {
  const bool by_request = plan.cache.split == CacheSplit::kRequests;
  const std::int64_t parts = by_request ? plan.mesh.tp : 1;
  Bytes most;
  std::int64_t layer = 0;
  for (const std::int64_t layers : layers_of_stages(plan, model.layers)) {
    Bytes of_stage;
    for (std::int64_t i = 0; i < layers; ++i, ++layer) {
      const auto size = [&](std::int64_t tokens) {
        return cache_size(model, kind_of(model, layer), plan.mesh.tp / parts, plan.cached(),
                          tokens);
      };
      of_stage += size(2) - size(1);
    }
    most = std::max(most, (of_stage + Bytes(parts - 1)) / parts);
  }
  return (most + Bytes(plan.mesh.cp - 1)) / plan.mesh.cp;
}

KvRoom kv_room(const Experiment& experiment, const Cluster& cluster, std::int64_t budget,
               std::int64_t block, double fraction) {
  Experiment largest = experiment;
  const std::int64_t tokens = (budget + experiment.plan.mesh.dp - 1) / experiment.plan.mesh.dp;
  largest.plan.pass.own_requests = {.groups = {{.queries = tokens}},
                                    .cache = experiment.plan.cached()};
  const SimulatedExperiment done = simulate_experiment(largest, cluster, {});
  const SimulationResult& result = done.runs.front().result;
  KvRoom room;
  Bytes of_experts;  // on chips that keep no cache
  const auto keepers = static_cast<std::size_t>(experiment.plan.mesh.mesh_ranks());
  for (std::size_t rank = 0; rank < result.memory_peaks.size(); ++rank) {
    const MemoryPeak& peak = result.memory_peaks[rank];
    const Bytes cache = peak.by_category[static_cast<std::size_t>(MemoryCategory::kCache)];
    Bytes& most = rank < keepers ? room.others : of_experts;
    most = std::max(most, peak.bytes - cache);
  }
  const auto capacity = static_cast<double>(cluster.chip.memory_capacity.value());
  const Bytes given(static_cast<std::int64_t>(std::floor(capacity * fraction)));
  if (of_experts > given) room.others = of_experts;
  room.available = given - room.others;
  room.of_block = block * cache_of_token(experiment.model, experiment.plan);
  const bool has_cache = room.of_block > Bytes(0);
  if (has_cache && room.available > Bytes(0)) {
    room.blocks = experiment.plan.mesh.dp * (room.available.value() / room.of_block.value());
  }
  return room;
}

}  // namespace stepsim
