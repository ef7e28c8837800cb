#include "experiment/pipeline_times.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "schedules/lowering/lower.h"
#include "schedules/lowering/stages/stage.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

enum Part : std::uint8_t { kForwardPart, kInputPart, kWeightPart, kParts };

// Returns a schedule in which every micro-batch has the pipeline to itself.
PipelineSchedule one_after_the_other(const PipelinePlan& plan, std::int64_t pp,
                                     std::int32_t microbatches) {
  PipelineSchedule schedule{.microbatches = microbatches,
                            .chunks = static_cast<std::int32_t>(chunks_of(plan)),
                            .placement = placement_of(plan)};
  std::vector<PipelineOp> order;
  const bool has_copies = schedule.placement == Placement::kBidirectional;
  for (std::int32_t microbatch = 0; microbatch < microbatches; ++microbatch) {
    // Each direction has its own chunk.
    const std::int32_t first = has_copies && microbatch >= microbatches / 2 ? 1 : 0;
    const std::int32_t end = has_copies ? first + 1 : schedule.chunks;
    for (std::int32_t chunk = first; chunk < end; ++chunk) {
      order.push_back({PipelineOpKind::kForward, microbatch, chunk});
    }
    for (std::int32_t chunk = end; chunk-- > first;) {
      order.push_back({PipelineOpKind::kBackwardInput, microbatch, chunk});
      order.push_back({PipelineOpKind::kBackwardWeight, microbatch, chunk});
    }
  }
  schedule.ranks.assign(static_cast<std::size_t>(pp), order);
  return schedule;
}

// Returns the time that a rank spends in each part of micro-batch `microbatch`, over all its
// chunks: from the first op of a run of neighbouring layers to its last one.
std::array<Duration, kParts> times_of(const OpGraph& graph, const Timeline& timeline,
                                      std::int32_t microbatch) {
  const Program& program = graph.programs[graph.ranks[timeline.rank.index()].program.index()];
  std::array<Duration, kParts> times{};
  Part part = kParts;
  std::optional<std::int32_t> layer;
  Time end;
  for (const TimelineOp& op : timeline.ops) {
    const OpLabel& label = program.labels[op.op];
    if (program.ops[op.op].kind != OpKind::kCompute || label.microbatch != microbatch) continue;
    const auto path =
        static_cast<PathLabel>(graph.compute_works[program.ops[op.op].work].path_label);
    Part now = kInputPart;
    if (path == PathLabel::kForward) now = kForwardPart;
    if (StepPart{label.part} == StepPart::kWeightGradient) now = kWeightPart;
    const bool is_neighbour = !label.layer || !layer || std::abs(*label.layer - *layer) <= 1;
    times[now] += op.ended - (now == part && is_neighbour ? end : op.started);
    part = now;
    layer = label.layer;
    end = op.ended;
  }
  return times;
}

// Adds the time of each message of a micro-batch from the moment when both sides have posted it.
void add_sends(const OpGraph& graph, const Timeline& timeline, std::int32_t microbatch,
               std::vector<Duration>& sends) {
  const Program& program = graph.programs[graph.ranks[timeline.rank.index()].program.index()];
  for (const TimelineOp& op : timeline.ops) {
    if (program.ops[op.op].kind != OpKind::kMessages) continue;
    if (program.labels[op.op].microbatch != microbatch) continue;
    sends.push_back(op.ended - op.moving);
  }
}

Duration median(std::vector<Duration> values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

PipelineCosts pipeline_times(const ModelSpec& model, const ParallelPlan& plan,
                             const Cluster& cluster) {
  if (!plans_by_cost(plan)) return {};
  constexpr std::int32_t kTimed = 1;  // the second of two
  ParallelPlan timed = plan;
  timed.batch.global_batch = plan.mesh.dp * plan.batch.microbatch_size * (kTimed + 1);
  timed.messages.batch_p2p = false;
  // With two directions, the copies of a stage end in different orders and would wait for each
  // other's reductions.
  if (placement_of(plan.pipeline) == Placement::kBidirectional)
    timed.state.zero = std::min(plan.state.zero, 1);
  timed.pipeline.own_schedule = one_after_the_other(plan.pipeline, plan.mesh.pp, kTimed + 1);
  const OpGraph graph = lower(model, timed, cluster.places, cluster.chip, {});
  SimulationOptions options;
  for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
    const RankData& data = graph.ranks[rank];
    if (data.tp == 0 && data.cp == 0 && data.dp == 0) options.recorded_ranks.emplace_back(rank);
  }
  const SimulationResult result = simulate(graph, cluster, options);

  std::array<std::vector<Duration>, kParts> parts;
  std::vector<Duration> sends;
  for (const Timeline& timeline : result.timelines) {
    const std::array<Duration, kParts> times = times_of(graph, timeline, kTimed);
    for (std::size_t part = 0; part < kParts; ++part) {
      parts[part].push_back(plan.mesh.pp * times[part] / stages_of(plan));
    }
    add_sends(graph, timeline, kTimed, sends);
  }
  const auto nanoseconds = [](Duration duration) { return duration.count() / 1000; };
  const auto at_least_1 = [&](Duration duration) {
    return std::max<std::int64_t>(1, nanoseconds(duration));
  };
  return {.forward = at_least_1(median(parts[kForwardPart])),
          .backward_input = at_least_1(median(parts[kInputPart])),
          .backward_weight = at_least_1(median(parts[kWeightPart])),
          .send = nanoseconds(median(sends))};
}

}  // namespace stepsim
