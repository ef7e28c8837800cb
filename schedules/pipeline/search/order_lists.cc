#include "schedules/pipeline/search/order_lists.h"

#include <algorithm>

namespace stepsim {

OrderLists::OrderLists(const PipelineSchedule& schedule, const StageCosts& costs)
    : lists_(schedule.ranks.size()) {
  const std::int32_t stages = stage_count(schedule);
  const auto number = [&](PipelineOpKind kind, std::int32_t stage, std::int32_t microbatch) {
    const std::int32_t table = kind == PipelineOpKind::kForward         ? 0
                               : kind == PipelineOpKind::kBackwardInput ? 1
                                                                        : 2;
    return (table * stages + stage) * schedule.microbatches + microbatch;
  };
  const auto count = static_cast<std::size_t>(3 * stages * schedule.microbatches);
  ops_.resize(count);
  times_.resize(count);
  sources_.resize(count);
  lags_.assign(count, 0);
  ends_.resize(count);
  waiting_.resize(count);
  for (std::int32_t rank = 0; rank < schedule.size(); ++rank) {
    for (const PipelineOp& op : schedule.ranks[at(rank)]) {
      const std::int32_t stage = stage_of(schedule, rank, op.chunk);
      const std::int32_t id = number(op.kind, stage, op.microbatch);
      lists_[at(rank)].push_back(id);
      ops_[at(id)] = op;
      times_[at(id)] = time_of(schedule, rank, op, costs);
      const bool is_forward = op.kind == PipelineOpKind::kForward;
      const std::int32_t source = is_forward ? stage - 1 : stage + 1;
      if (op.kind == PipelineOpKind::kBackwardWeight || source < 0 || source == stages) continue;
      if (rank_of(schedule, op.microbatch, source) == rank) continue;  // the list's order covers it
      sources_[at(id)] = number(op.kind, source, op.microbatch);
      lags_[at(id)] = costs.at(is_forward ? source : stage).send;
    }
  }
  next_.resize(lists_.size());
  free_.resize(lists_.size());
}

std::optional<OrderLists::Spans> OrderLists::spans() {
  std::ranges::fill(ends_, CompactOptional<std::int64_t>());
  std::ranges::fill(waiting_, CompactOptional<std::int32_t>());
  std::ranges::fill(next_, 0);
  std::ranges::fill(free_, 0);
  std::size_t left = lists_.size();
  Spans spans;
  for (std::size_t first = 0; first < lists_.size(); ++first) {
    queue_.push_back(static_cast<std::int32_t>(first));
    while (!queue_.empty()) {
      const std::int32_t rank = queue_.back();
      queue_.pop_back();
      if (!advance(rank)) continue;
      --left;
      const std::int32_t id = lists_[at(rank)].front();
      const std::int64_t span = free_[at(rank)] - (*ends_[at(id)] - times_[at(id)]);
      spans.longest = std::max(spans.longest, span);
      spans.all += span;
    }
  }
  if (left > 0) return std::nullopt;
  return spans;
}

std::vector<RankOrder> OrderLists::orders(
    const std::vector<std::vector<std::int32_t>>& lists) const {
  std::vector<RankOrder> orders;
  for (const std::vector<std::int32_t>& list : lists) {
    RankOrder& order = orders.emplace_back();
    for (const std::int32_t id : list) order.push_back(ops_[at(id)]);
  }
  return orders;
}

// Runs the rank's list until it waits. Returns true if the list has ended.
bool OrderLists::advance(std::int32_t rank) {
  const std::vector<std::int32_t>& list = lists_[at(rank)];
  std::size_t next = next_[at(rank)];
  std::int64_t free = free_[at(rank)];
  for (; next < list.size(); ++next) {
    const std::size_t id = at(list[next]);
    if (const CompactOptional<std::int32_t> source = sources_[id]) {
      const CompactOptional<std::int64_t> end = ends_[at(*source)];
      if (!end) {
        waiting_[at(*source)] = rank;
        break;
      }
      free = std::max(free, *end + lags_[id]);
    }
    free += times_[id];
    ends_[id] = free;
    if (waiting_[id]) queue_.push_back(*waiting_[id]);
  }
  next_[at(rank)] = next;
  free_[at(rank)] = free;
  return next == list.size();
}

}  // namespace stepsim
