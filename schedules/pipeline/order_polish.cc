#include "schedules/pipeline/order_polish.h"

#include <algorithm>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "schedules/pipeline/op_makers.h"
#include "schedules/pipeline/replay.h"

namespace stepsim {
namespace {

using Score = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // the smaller, the better

constexpr std::size_t kUsualReach = 2;
constexpr std::size_t kFarReach = 12;  // every fourth step

std::optional<Score> score_of(const PipelineSchedule& schedule, const StageCosts& costs,
                              std::int64_t memory_limit) {
  const std::optional<PipelineReplay> replayed = try_replay(schedule, costs);
  if (!replayed || std::ranges::max(replayed->peak_in_flight) > memory_limit) return std::nullopt;
  std::int64_t spans = 0;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const std::vector<std::int64_t>& starts = replayed->starts[rank];
    spans += starts.back() - starts.front() +
             time_of(schedule, static_cast<std::int32_t>(rank), schedule.ranks[rank].back(), costs);
  }
  return Score(replayed->longest_span, spans, replayed->makespan);
}

// Whether the first may stand before the second.
bool may_precede(const PipelineOp& first, const PipelineOp& second) {
  if (first.chunk != second.chunk) return true;
  if (first.kind == second.kind) return first.microbatch < second.microbatch;
  const auto step = [](PipelineOpKind kind) {
    if (kind == PipelineOpKind::kForward) return 0;
    return kind == PipelineOpKind::kBackwardInput ? 1 : 2;
  };
  return first.microbatch != second.microbatch || step(first.kind) < step(second.kind);
}

// Moves an op; false if it would pass one that has to stay on its side.
bool move_op(RankOrder& order, std::size_t from, std::size_t to) {
  const PipelineOp op = order[from];
  const auto passes = [&](std::size_t i) {
    return to < from ? may_precede(op, order[i]) : may_precede(order[i], op);
  };
  for (std::size_t i = std::min(from, to); i <= std::max(from, to); ++i) {
    if (i != from && !passes(i)) return false;
  }
  const auto begin = order.begin();
  const auto at = [&](std::size_t i) { return begin + static_cast<std::ptrdiff_t>(i); };
  if (to < from) {
    std::rotate(at(to), at(from), at(from) + 1);
  } else {
    std::rotate(at(from), at(from) + 1, at(to) + 1);
  }
  return true;
}

}  // namespace

PipelineSchedule polish(PipelineSchedule schedule, const StageCosts& costs,
                        const PolishLimits& limits) {
  std::optional<Score> best = score_of(schedule, costs, limits.memory_limit);
  std::mt19937 random(1);
  const auto below = [&random](std::size_t count) { return random() % count; };
  for (std::int64_t step = 0; best && step < limits.steps; ++step) {
    if (std::get<0>(*best) <= limits.enough) break;
    RankOrder& order = schedule.ranks[below(schedule.ranks.size())];
    const std::size_t from = below(order.size());
    const std::size_t by = 1 + below(below(4) == 0 ? kFarReach : kUsualReach);
    const std::size_t to =
        below(2) == 0 ? from - std::min(from, by) : std::min(order.size() - 1, from + by);
    if (to == from || !move_op(order, from, to)) continue;
    const std::optional<Score> score = score_of(schedule, costs, limits.memory_limit);
    if (score && *score <= *best) {
      best = score;
    } else {
      move_op(order, to, from);
    }
  }
  return schedule;
}

}  // namespace stepsim
