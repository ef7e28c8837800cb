#include "experiment/finished_run.h"

#include <algorithm>

namespace stepsim {

std::vector<RankId> fullest_ranks(const OpGraph& graph, const SimulationResult& result) {
  std::vector<RankId> fullest;
  std::vector<bool> found;
  for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
    const std::size_t stage = graph.ranks[rank].pp;
    if (stage >= fullest.size()) {
      fullest.resize(stage + 1);
      found.resize(stage + 1);
    }
    const MemoryPeak& best = result.memory_peaks[fullest[stage].index()];
    if (found[stage] && result.memory_peaks[rank].bytes <= best.bytes) continue;
    fullest[stage] = RankId(rank);
    found[stage] = true;
  }
  return fullest;
}

std::string text_of_peak(const OpGraph& graph, RankId rank, const MemoryPeak& peak) {
  if (!peak.op) return {};
  const Program& program = graph.programs[graph.ranks[rank.index()].program.index()];
  const OpLabel& label = program.labels[peak.op->index()];
  std::string text = graph.names[label.name];
  if (label.layer) text += ", layer " + std::to_string(*label.layer);
  if (label.microbatch) text += ", micro-batch " + std::to_string(*label.microbatch);
  return text;
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

bool fits(const FinishedRun& run) {
  const Bytes capacity = run.cluster.chip.memory_capacity;
  const Bytes on_host = run.cluster.hosts.spec.memory_capacity;
  for (const Bytes host : run.result.host_peaks) {
    if (host > on_host) return false;
  }
  return std::all_of(run.result.memory_peaks.begin(), run.result.memory_peaks.end(),
                     [capacity](const MemoryPeak& peak) { return peak.bytes <= capacity; });
}

}  // namespace stepsim
