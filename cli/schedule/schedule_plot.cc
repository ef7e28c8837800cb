#include "cli/schedule/schedule_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

namespace stepsim {
namespace {

ColourRole role_of(PipelineOpKind kind) {
  switch (kind) {
    case PipelineOpKind::kForward:
      return ColourRole::kForward;
    case PipelineOpKind::kBackward:
    case PipelineOpKind::kBackwardInput:
      return ColourRole::kBackward;
    case PipelineOpKind::kBackwardWeight:
      return ColourRole::kWeightGradient;
    case PipelineOpKind::kForwardBackward:
      break;
  }
  return ColourRole::kForwardAndBackward;
}

// By how much what a rank holds changes at the begin and at the end of an op (replay.h).
bool takes(PipelineOpKind kind) {
  return kind == PipelineOpKind::kForward || kind == PipelineOpKind::kForwardBackward;
}
bool releases(PipelineOpKind kind) {
  return kind == PipelineOpKind::kBackward || kind == PipelineOpKind::kBackwardWeight ||
         kind == PipelineOpKind::kForwardBackward;
}

}  // namespace

TimelinePlot schedule_plot(const std::string& name, const PipelineSchedule& schedule,
                           const StageCosts& costs, const PipelineReplay& replayed) {
  TimelinePlot plot;
  plot.title = fmt::format("{}: {} stages, {} micro-batches", name, schedule.ranks.size(),
                           schedule.microbatches);
  plot.end = Time{Duration(replayed.makespan)};
  std::int64_t most = 0;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    PlottedRank row;
    row.name = fmt::format("rank {}", rank);
    std::map<std::int64_t, std::int64_t> changes;
    for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      const PipelineOp& op = schedule.ranks[rank][i];
      const std::int64_t start = replayed.starts[rank][i];
      const std::int64_t end =
          start + time_of(schedule, static_cast<std::int32_t>(rank), op, costs);
      PlottedSlice& slice = row.slices.emplace_back();
      slice.from = Time{Duration(start)};
      slice.to = Time{Duration(end)};
      slice.label = std::to_string(op.microbatch);
      if (op.kind == PipelineOpKind::kForwardBackward) {
        slice.label += "/" + std::to_string(op.backward_microbatch);
      }
      slice.role = role_of(op.kind);
      slice.is_pale = op.chunk % 2 == 1;
      if (takes(op.kind)) ++changes[start];
      if (releases(op.kind)) --changes[end];
    }
    std::int64_t held = 0;
    row.holds.emplace_back(Time{}, 0);
    for (const auto& [at, change] : changes) {
      held += change;
      row.holds.emplace_back(Time{Duration(at)}, static_cast<double>(held));
      most = std::max(most, held);
    }
    plot.ranks.push_back(std::move(row));
  }
  plot.holds = fmt::format("micro-batches x chunks held, up to {}", most);
  return plot;
}

}  // namespace stepsim
