#include "experiment/step/schedule_run.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "schedules/lowering/order_graph.h"
#include "topology/kinds/torus/torus.h"

namespace stepsim {
namespace {

constexpr int kShortestRing = 3;  // two ranks have a single cable, which suffices

}  // namespace

// Every message goes from a rank to the next or the previous one, or round the end of a loop.
Cluster order_cluster(std::int32_t ranks, Duration send) {
  TorusSpec spec;
  spec.axes = {{.size = ranks, .wraps = ranks >= kShortestRing}};
  spec.link_bandwidth = Bandwidth(1);  // messages have no bytes
  spec.link_latency = send;
  BuiltTopology built = build(spec);
  return {.fabric = std::move(built.fabric),
          .router = std::move(built.router),
          .places = std::move(built.places),
          .chip = order_chip()};
}

std::vector<RankId> all_ranks(const OpGraph& graph) {
  std::vector<RankId> ranks;
  for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) ranks.emplace_back(rank);
  return ranks;
}

PipelineReplay replayed_of(const OpGraph& graph, const SimulationResult& result) {
  PipelineReplay replayed;
  for (const Timeline& timeline : result.timelines) {
    const std::size_t rank = timeline.rank.index();
    const Program& program = graph.programs[graph.ranks[rank].program.index()];
    std::vector<std::int64_t>& starts = replayed.starts.emplace_back();
    std::int64_t work = 0;
    std::int64_t last_end = 0;
    for (const TimelineOp& op : timeline.ops) {
      if (program.ops[op.op].kind != OpKind::kCompute) continue;
      starts.push_back(op.started.since_start.count());
      last_end = op.ended.since_start.count();
      work += last_end - starts.back();
    }
    replayed.peak_in_flight.push_back(result.memory_peaks[rank].bytes.value());
    if (starts.empty()) continue;
    replayed.makespan = std::max(replayed.makespan, last_end);
    replayed.ideal = std::max(replayed.ideal, work);
    const std::int64_t span = last_end - starts.front();
    replayed.span_bubble = std::max(replayed.span_bubble, span - work);
    replayed.longest_span = std::max(replayed.longest_span, span);
  }
  return replayed;
}

ScheduleRun simulate_schedule(const PipelineSchedule& schedule, const StageCosts& costs,
                              SimulationOptions options, const Posting* posting) {
  ScheduleRun run{.graph = order_graph(schedule, costs, posting),
                  .cluster = order_cluster(schedule.size(), Duration(costs.at(0).send)),
                  .result = {},
                  .replayed = {}};
  options.fidelity = Fidelity::kLatencyBandwidth;
  options.recorded_ranks = all_ranks(run.graph);
  run.result = simulate(run.graph, run.cluster, options);
  run.replayed = replayed_of(run.graph, run.result);
  return run;
}

}  // namespace stepsim
