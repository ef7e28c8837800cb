#include "schedules/pipeline/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "schedules/pipeline/compact_optional.h"
#include "sim/base/error.h"

namespace stepsim {
namespace {

// Need is something that an op waits for: the F or the B of a micro-batch on a stage.
struct Need {
  bool is_forward = true;
  std::int32_t microbatch = 0;
  std::int32_t stage = 0;
};

// Parts are the passes that one op consists of.
struct Parts {
  std::optional<std::pair<std::int32_t, std::int32_t>> forward{};   // micro-batch, chunk
  std::optional<std::pair<std::int32_t, std::int32_t>> backward{};  // if it passes a gradient on
  bool weight = false;
};

Parts parts_of(const PipelineOp& op) {
  const std::pair first(op.microbatch, op.chunk);
  switch (op.kind) {
    case PipelineOpKind::kForward:
      return {.forward = first};
    case PipelineOpKind::kBackward:
      return {.backward = first, .weight = true};
    case PipelineOpKind::kBackwardInput:
      return {.backward = first};
    case PipelineOpKind::kBackwardWeight:
      return {.weight = true};
    case PipelineOpKind::kForwardBackward:
      break;
  }
  return {.forward = first,
          .backward = std::pair(op.backward_microbatch, op.backward_chunk),
          .weight = true};
}

class Replayer {
 public:
  Replayer(const PipelineSchedule& schedule, const StageCosts& costs)
      : schedule_(schedule), costs_(costs), stages_(stage_count(schedule)) {
    assert(costs.are_even() || static_cast<std::int32_t>(costs.listed().size()) == stages_);
    const std::size_t ranks = schedule.ranks.size();
    const auto table =
        static_cast<std::size_t>(stages_) * static_cast<std::size_t>(schedule.microbatches);
    forward_ends_.resize(table);
    backward_ends_.resize(table);
    next_.assign(ranks, 0);
    free_at_.assign(ranks, 0);
    work_.assign(ranks, 0);
    in_flight_.assign(ranks, 0);
    is_queued_.assign(ranks, true);
    result_.peak_in_flight.assign(ranks, 0);
    result_.starts.resize(ranks);
    for (std::size_t rank = ranks; rank-- > 0;) {
      result_.starts[rank].reserve(schedule.ranks[rank].size());
      queue_.push_back(static_cast<std::int32_t>(rank));
    }
  }

  // Returns whether every op ran.
  bool run() {
    while (!queue_.empty()) {
      const std::int32_t rank = queue_.back();
      queue_.pop_back();
      is_queued_[at(rank)] = false;
      while (next_[at(rank)] < list(rank).size() && try_next(rank)) {
      }
    }
    for (std::int32_t rank = 0; rank < schedule_.size(); ++rank) {
      if (next_[at(rank)] < list(rank).size()) return false;
    }
    return true;
  }

  PipelineReplay take_result() {
    for (std::size_t rank = 0; rank < free_at_.size(); ++rank) {
      if (result_.starts[rank].empty()) continue;
      const std::int64_t span = free_at_[rank] - result_.starts[rank].front();
      result_.makespan = std::max(result_.makespan, free_at_[rank]);
      result_.ideal = std::max(result_.ideal, work_[rank]);
      result_.span_bubble = std::max(result_.span_bubble, span - work_[rank]);
      result_.longest_span = std::max(result_.longest_span, span);
    }
    return std::move(result_);
  }

  // Describes a circle of waits. It starts at a rank that stands still and goes to the rank that
  // has the awaited op in its list, until a rank repeats. REQUIRES: run() returned false.
  std::string cycle() const {
    std::vector<std::int32_t> path;
    std::int32_t rank = 0;
    while (next_[at(rank)] >= list(rank).size()) ++rank;
    while (std::ranges::find(path, rank) == path.end()) {
      path.push_back(rank);
      rank = rank_of(*missing(rank));
    }
    path.erase(path.begin(), std::ranges::find(path, rank));
    std::string text;
    for (const std::int32_t waiting : path) {
      const Need need = *missing(waiting);
      const std::int32_t other = rank_of(need);
      text += fmt::format("\n  rank {} at {} (op {} of its list) waits for {}, which is op {} {}",
                          waiting, to_text(list(waiting)[next_[at(waiting)]]),
                          next_[at(waiting)] + 1, what(need), position(need, other) + 1,
                          other == waiting ? "of its own list" : fmt::format("on rank {}", other));
    }
    return text;
  }

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
  const std::vector<PipelineOp>& list(std::int32_t rank) const { return schedule_.ranks[at(rank)]; }

  std::size_t cell(const Need& need) const {
    return at(need.microbatch) * at(stages_) + at(need.stage);
  }
  CompactOptional<std::int64_t> end_of(const Need& need) const {
    return (need.is_forward ? forward_ends_ : backward_ends_)[cell(need)];
  }

  std::int32_t chunk_of(const Need& need) const {
    return stepsim::chunk_of(schedule_, need.microbatch, need.stage);
  }
  std::int32_t rank_of(const Need& need) const {
    return stepsim::rank_of(schedule_, need.microbatch, need.stage);
  }

  // Calls visit(need, send) for everything that the op waits for. `send` is the time to add after
  // the need's end.
  template <typename Visit>
  void needs_of(std::int32_t rank, const PipelineOp& op, const Visit& visit) const {
    const Parts parts = parts_of(op);
    const auto from = [&](const Need& need) {
      const std::int32_t boundary = need.is_forward ? need.stage : need.stage - 1;
      visit(need, rank_of(need) == rank ? 0 : costs_.at(boundary).send);
    };
    if (parts.forward) {
      const std::int32_t stage = stage_of(schedule_, rank, parts.forward->second);
      if (stage > 0) from({true, parts.forward->first, stage - 1});
    }
    if (parts.backward) {
      const std::int32_t stage = stage_of(schedule_, rank, parts.backward->second);
      from({true, parts.backward->first, stage});
      if (stage + 1 < stages_) from({false, parts.backward->first, stage + 1});
    } else if (parts.weight) {
      from({false, op.microbatch, stage_of(schedule_, rank, op.chunk)});
    }
  }

  std::optional<Need> missing(std::int32_t rank) const {
    std::optional<Need> first;
    needs_of(rank, list(rank)[next_[at(rank)]], [&](const Need& need, std::int64_t) {
      if (!first && !end_of(need)) first = need;
    });
    return first;
  }

  bool try_next(std::int32_t rank) {
    const PipelineOp& op = list(rank)[next_[at(rank)]];
    std::int64_t start = free_at_[at(rank)];
    bool is_ready = true;
    needs_of(rank, op, [&](const Need& need, std::int64_t send) {
      const CompactOptional<std::int64_t> end = end_of(need);
      if (end) {
        start = std::max(start, *end + send);
      } else {
        is_ready = false;
      }
    });
    if (!is_ready) return false;
    const std::int64_t time = time_of(schedule_, rank, op, costs_);
    result_.starts[at(rank)].push_back(start);
    free_at_[at(rank)] = start + time;
    work_[at(rank)] += time;
    ++next_[at(rank)];
    pass_on(rank, op, start + time);
    return true;
  }

  // Records the results of an op and wakes the ranks that may wait for them.
  void pass_on(std::int32_t rank, const PipelineOp& op, std::int64_t end) {
    const Parts parts = parts_of(op);
    if (parts.forward) {
      const Need done{true, parts.forward->first, stage_of(schedule_, rank, parts.forward->second)};
      forward_ends_[cell(done)] = end;
      if (done.stage + 1 < stages_) wake({true, done.microbatch, done.stage + 1}, rank);
      std::int64_t& peak = result_.peak_in_flight[at(rank)];
      peak = std::max(peak, ++in_flight_[at(rank)]);
    }
    if (parts.backward) {
      const Need done{false, parts.backward->first,
                      stage_of(schedule_, rank, parts.backward->second)};
      backward_ends_[cell(done)] = end;
      if (done.stage > 0) wake({false, done.microbatch, done.stage - 1}, rank);
    }
    if (parts.weight) --in_flight_[at(rank)];
  }

  void wake(const Need& consumer, std::int32_t from) {
    const std::int32_t rank = rank_of(consumer);
    if (rank == from || is_queued_[at(rank)]) return;
    is_queued_[at(rank)] = true;
    queue_.push_back(rank);
  }

  std::string what(const Need& need) const {
    return fmt::format("the {} of micro-batch {} on chunk {}",
                       need.is_forward ? "forward" : "backward", need.microbatch, chunk_of(need));
  }
  std::size_t position(const Need& need, std::int32_t rank) const {
    const std::pair wanted(need.microbatch, chunk_of(need));
    const auto found = std::ranges::find_if(list(rank), [&](const PipelineOp& op) {
      const Parts parts = parts_of(op);
      return (need.is_forward ? parts.forward : parts.backward) == wanted;
    });
    return static_cast<std::size_t>(found - list(rank).begin());
  }

  const PipelineSchedule& schedule_;
  const StageCosts& costs_;
  std::int32_t stages_;
  std::vector<CompactOptional<std::int64_t>> forward_ends_;  // by micro-batch and stage
  std::vector<CompactOptional<std::int64_t>> backward_ends_;
  std::vector<std::size_t> next_;  // by rank
  std::vector<std::int64_t> free_at_;
  std::vector<std::int64_t> work_;
  std::vector<std::int64_t> in_flight_;
  std::vector<bool> is_queued_;
  std::vector<std::int32_t> queue_;
  PipelineReplay result_;
};

}  // namespace

PipelineReplay replay(const PipelineSchedule& schedule, const StageCosts& costs) {
  Replayer replayer(schedule, costs);
  if (!replayer.run()) {
    throw ConfigError(
        {{"schedule", "can't run, its ranks wait for each other:" + replayer.cycle()}});
  }
  return replayer.take_result();
}

PipelineReplay replay(const PipelineSchedule& schedule, const PipelineCosts& costs) {
  return replay(schedule, StageCosts(costs));
}

std::optional<PipelineReplay> try_replay(const PipelineSchedule& schedule,
                                         const StageCosts& costs) {
  Replayer replayer(schedule, costs);
  if (!replayer.run()) return std::nullopt;
  return replayer.take_result();
}

std::string find_cycle(const PipelineSchedule& schedule) {
  const StageCosts any = PipelineCosts{};
  Replayer replayer(schedule, any);
  return replayer.run() ? "" : replayer.cycle();
}

}  // namespace stepsim
