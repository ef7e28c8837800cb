#include "tests/fuzz/random/folding_laws.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "tests/fuzz/random/run_laws.h"

namespace stepsim {
namespace {

enum class Blemish : std::uint8_t { kNone, kStraggler, kSlowLink, kFailedLink };
constexpr std::array kBlemishes{Blemish::kNone, Blemish::kStraggler, Blemish::kSlowLink,
                                Blemish::kFailedLink};

std::string_view name_of(Blemish blemish) {
  constexpr std::array<std::string_view, 4> kNames{"as it is", "with a straggler",
                                                   "with a slow link", "with a failed link"};
  return kNames[static_cast<std::size_t>(blemish)];
}

void add(Blemish blemish, Choices& choices, Experiment& experiment) {
  if (blemish == Blemish::kStraggler) {
    const auto rank = choices.below(static_cast<std::uint64_t>(experiment.plan.mesh.ranks()));
    experiment.variation.stragglers.push_back(
        {.ranks = {RankId(static_cast<std::uint32_t>(rank))}, .slowdown = 1.25});
  }
  if (blemish != Blemish::kSlowLink && blemish != Blemish::kFailedLink) return;
  const Cluster cluster = build_cluster(experiment.cluster);
  if (cluster.fabric.links().empty()) return;
  const auto link = choices.below(cluster.fabric.links().size());
  LinkFault fault{.link = cluster.fabric.link_name(LinkId(static_cast<std::uint32_t>(link)))};
  if (blemish == Blemish::kSlowLink) {
    fault.capacity = 0.5;
  } else {
    fault.down = true;
  }
  experiment.cluster.faults.links.push_back(std::move(fault));
}

using OpTimes = std::tuple<std::uint32_t, std::uint32_t, Time, Time, Time, Time>;

// Returns a timeline whatever the order of its simultaneous ops.
std::vector<OpTimes> times_of(const Timeline& timeline) {
  std::vector<OpTimes> times;
  for (const TimelineOp& op : timeline.ops) {
    times.emplace_back(op.step, op.op, op.ready, op.started, op.moving, op.ended);
  }
  std::ranges::sort(times);
  return times;
}

std::set<std::vector<OpTimes>> different_timelines(const OpGraph& graph,
                                                   const SimulationResult& result) {
  std::set<std::vector<OpTimes>> different;
  for (const Timeline& timeline : result.timelines) {
    std::vector<OpTimes> times = times_of(timeline);
    const std::uint32_t program = graph.ranks[timeline.rank.index()].program.index();
    times.emplace_back(program, 0, Time{}, Time{}, Time{}, Time{});
    different.insert(std::move(times));
  }
  return different;
}

// Returns what differs between the results of ranks, links and hosts.
std::string difference(const SimulationResult& folded, const SimulationResult& whole) {
  if (folded.step_time != whole.step_time) {
    return fmt::format("a step takes {} ps, not {}", folded.step_time.count(),
                       whole.step_time.count());
  }
  if (folded.breakdowns != whole.breakdowns) return "breakdowns";
  for (std::size_t rank = 0; rank < whole.memory_peaks.size(); ++rank) {
    const auto key = [](const MemoryPeak& peak) {
      return std::tuple(peak.bytes, peak.at, peak.by_category, peak.op);
    };
    if (key(folded.memory_peaks[rank]) != key(whole.memory_peaks[rank])) {
      const MemoryPeak& one = folded.memory_peaks[rank];
      const MemoryPeak& other = whole.memory_peaks[rank];
      return fmt::format("the peak of rank {}: {} bytes at {} ps, op {}, not {} at {}, op {}", rank,
                         one.bytes.value(), one.at.since_start.count(),
                         one.op ? static_cast<int>(one.op->index()) : -1, other.bytes.value(),
                         other.at.since_start.count(),
                         other.op ? static_cast<int>(other.op->index()) : -1);
    }
  }
  if (folded.host_peaks != whole.host_peaks) return "peaks of hosts";
  if (folded.bytes_by_axis != whole.bytes_by_axis) return "bytes by axis";
  for (std::size_t link = 0; link < whole.links.size(); ++link) {
    if (folded.links[link].bytes != whole.links[link].bytes ||
        folded.links[link].utilization != whole.links[link].utilization) {
      return fmt::format("bytes of link {}: {}, not {}", link, folded.links[link].bytes,
                         whole.links[link].bytes);
    }
  }
  for (std::size_t rank = 0; rank < whole.timelines.size(); ++rank) {
    if (times_of(folded.timelines[rank]) != times_of(whole.timelines[rank])) {
      return fmt::format("the timeline of rank {}", rank);
    }
  }
  return "";
}

std::string broken_with(const LoadedExperiment& loaded) {
  ExperimentOptions options = loaded.simulation;
  options.granularity = Granularity::kPipelined;
  if (options.fidelities.front() == Fidelity::kPacket) options.fidelities = {Fidelity::kFlow};
  options.fidelities.resize(1);
  const auto ranks = static_cast<std::uint32_t>(loaded.experiment.plan.mesh.ranks());
  options.recorded_ranks.clear();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) options.recorded_ranks.emplace_back(rank);
  const auto run = [&](bool fold) {
    options.fold = fold;
    return simulate_experiment(loaded.experiment, cluster_for_steps(loaded.experiment), options);
  };
  const SimulatedExperiment folded = run(true);
  const FoldStatistics& folding = folded.runs.front().result.statistics.folding;
  if (!folding.why_not.empty()) return "";
  const SimulatedExperiment whole = run(false);
  std::string broken = difference(folded.runs.front().result, whole.runs.front().result);
  const Cluster cluster = cluster_for_steps(loaded.experiment);
  if (broken.empty() &&
      json_of_run(loaded, cluster, folded) != json_of_run(loaded, cluster, whole)) {
    broken = "JSON";
  }
  if (!broken.empty()) {
    return fmt::format("folding {} ranks into {} changes: {}", folding.ranks, folding.classes,
                       broken);
  }
  const std::size_t different = different_timelines(whole.graph, whole.runs.front().result).size();
  if (different <= folding.classes) return "";
  return fmt::format("{} classes of ranks have {} different timelines", folding.classes, different);
}

// Micro-batches of a replica's step; enough for a pipeline to repeat itself.
constexpr std::int64_t kManyMicrobatches = 48;

// Returns whether the plan can be one of many micro-batches.
bool make_long(Experiment& experiment) {
  ParallelPlan& plan = experiment.plan;
  if (plan.is_inference() || plan.batch.global_batch <= 0 || plan.microbatches() <= 0) return false;
  const std::int64_t times = kManyMicrobatches / plan.microbatches();
  if (times > 1) plan.batch.global_batch *= times;
  return check(plan, experiment.model, experiment.cluster, build_cluster(experiment.cluster).places)
      .empty();
}

}  // namespace

std::string broken_repeats(const LoadedExperiment& loaded, std::uint64_t& skipped) {
  LoadedExperiment repeated{.experiment = loaded.experiment,
                            .topology = {},
                            .simulation = loaded.simulation,
                            .record = loaded.record};
  skipped = 0;
  if (!make_long(repeated.experiment)) return "";
  ExperimentOptions options = loaded.simulation;
  options.granularity = Granularity::kPipelined;
  if (options.fidelities.front() == Fidelity::kPacket) options.fidelities = {Fidelity::kFlow};
  options.fidelities.resize(1);
  options.recorded_ranks.clear();
  options.record_each_role = options.record_links = options.explains = false;
  const Cluster cluster = cluster_for_steps(repeated.experiment);
  const auto run = [&](bool repeats) {
    options.repeats = repeats;
    return simulate_experiment(repeated.experiment, cluster, options);
  };
  const SimulatedExperiment some = run(true);
  const SimulationResult& result = some.runs.front().result;
  skipped = result.statistics.repeated_ops;
  if (skipped == 0) return "";
  const SimulatedExperiment simulated = run(false);
  const SimulationResult& all = simulated.runs.front().result;
  std::string broken = difference(result, all);
  if (broken.empty() && result.end != all.end) broken = "the end";
  if (broken.empty() && result.breakdown != all.breakdown) broken = "the breakdown";
  if (broken.empty() && result.statistics.ops != all.statistics.ops) broken = "ops";
  const auto is_same_part = [](const PathPart& one, const PathPart& other) {
    return one.label == other.label && one.duration == other.duration;
  };
  if (broken.empty() &&
      !std::ranges::equal(result.critical_path, all.critical_path, is_same_part)) {
    broken = "the critical path";
  }
  if (broken.empty()) return "";
  return fmt::format("{} micro-batches, {} of {} ops not simulated: {}",
                     repeated.experiment.plan.microbatches(), skipped, result.statistics.ops,
                     broken);
}

std::string broken_folding(const LoadedExperiment& loaded, Choices& choices) {
  for (const Blemish blemish : kBlemishes) {
    LoadedExperiment blemished{.experiment = loaded.experiment,
                               .topology = {},
                               .simulation = loaded.simulation,
                               .record = loaded.record};
    add(blemish, choices, blemished.experiment);
    try {
      const std::string broken = broken_with(blemished);
      if (!broken.empty()) return fmt::format("{}, {}", broken, name_of(blemish));
    } catch (const ConfigError&) {
      if (blemish == Blemish::kNone) throw;  // else: without the link some chips reach no others
    }
  }
  return "";
}

}  // namespace stepsim
