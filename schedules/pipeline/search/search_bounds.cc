// Lower bounds on a state's spans and makespan. SearchState uses them to drop orders.

#include <algorithm>
#include <limits>

#include "schedules/pipeline/search/search_state.h"

namespace stepsim {

// Returns how many ops of a kind have run at a stage.
std::int32_t SearchState::ran(bool is_forward, std::size_t stage) const {
  const std::int32_t rank = problem_->rank_at[stage];
  const std::int32_t chunk = problem_->chunk_at[stage];
  const std::int32_t move = is_forward ? chunk : problem_->chunks + chunk;
  return (is_forward ? forwards_ : backwards_)[cell(rank, chunk)] -
         (waiting_[at(rank)] == CompactOptional(move) ? 1 : 0);
}

// Returns the earliest time at which the input of the next op of a kind is there. It follows that
// micro-batch from where it is now; each rank on the way first runs the ops that must come before.
std::int64_t SearchState::earliest_input(std::int32_t rank, std::int32_t move) const {
  const bool is_forward = problem_->is_forward(move);
  const std::size_t goal = problem_->stage_of(rank, problem_->chunk_of_move(move));
  const std::int32_t microbatch = ran(is_forward, goal);
  const std::size_t last = problem_->rank_at.size() - 1;
  std::int64_t time = 0;  // when the next op on the way has its input
  const auto pass = [&](bool forward, std::size_t stage) {
    const std::int64_t one = forward ? problem_->forward_time[stage] : problem_->input_time[stage];
    const std::int64_t before = microbatch - ran(forward, stage);
    const std::size_t crossed = forward ? stage + 1 : stage;  // the boundary behind it
    const bool is_sent = crossed > 0 && crossed <= last && problem_->is_local[crossed] == 0;
    time = std::max(time, free_[at(problem_->rank_at[stage])] + before * one) + one +
           (is_sent ? problem_->send : 0);
  };
  const auto arrived = [&](bool forward, std::size_t stage) {
    const auto& queue = (forward ? activations_ : gradients_)[stage];
    const auto place = static_cast<std::size_t>(microbatch - ran(forward, stage));
    return place < queue.size() ? queue[place] : 0;
  };
  const std::size_t top = is_forward ? goal : last;
  std::size_t stage = top;
  if (!is_forward) {
    std::size_t back = goal;
    while (back < last && ran(false, back + 1) <= microbatch) ++back;
    if (back < last) {  // B has come down to the stage above `back`
      time = arrived(false, back);
      for (; back > goal; --back) pass(false, back);
      return time;
    }
  }
  while (stage > 0 && ran(true, stage - 1) <= microbatch) --stage;
  time = arrived(true, stage);
  for (; stage < top; ++stage) {
    if (ran(true, stage) <= microbatch) pass(true, stage);
  }
  if (!is_forward) {
    if (ran(true, last) <= microbatch) pass(true, last);
    for (stage = last; stage > goal; --stage) pass(false, stage);
  }
  return time;
}

// Returns when the rank can continue at the earliest.
std::int64_t SearchState::earliest(std::int32_t rank) const {
  if (!waiting_[at(rank)]) return free_[at(rank)];
  return std::max(free_[at(rank)], earliest_input(rank, *waiting_[at(rank)]));
}

// Returns how long the rank will be idle for lack of gradients, whatever else it runs until then.
std::int64_t SearchState::idle_for_gradient(std::int32_t rank) const {
  if (waiting_[at(rank)]) return 0;
  const std::int64_t due = backwards_of(rank) - weights_[at(rank)];
  const std::int64_t room = problem_->memory_limit - in_flight(rank) + due;
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t forwards_left = 0;
  std::int64_t forward_time = 0;  // the longest forward
  std::int64_t gradient = kNever;
  for (std::int32_t chunk = 0; chunk < problem_->chunks; ++chunk) {
    forwards_left += problem_->microbatches - forwards_[cell(rank, chunk)];
    forward_time = std::max(forward_time, problem_->time_of_move(rank, chunk));
    if (backwards_[cell(rank, chunk)] == problem_->microbatches) continue;
    gradient = std::min(gradient, earliest_input(rank, problem_->chunks + chunk));
  }
  if (gradient == kNever) return 0;
  const std::int64_t until_then =
      std::min(forwards_left, room) * forward_time + due * problem_->weight_time[at(rank)];
  return std::max<std::int64_t>(0, gradient - until_then - free_[at(rank)]);
}

// Returns false if a rank cannot end in time.
bool SearchState::update_bounds() {
  const SearchProblem& problem = *problem_;
  const std::int64_t all = std::int64_t{problem.microbatches} * problem.chunks;
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min() / 2;
  std::int64_t last_stage = kNever;  // earliest end of its last B
  std::int64_t upwards = kNever;     // earliest end of the last B of this rank and all behind it
  score_ = {};
  for (std::int32_t rank = problem.ranks; rank-- > 0;) {
    const std::int64_t begin = earliest(rank);
    const CompactOptional<std::int32_t> waits_for = waiting_[at(rank)];
    const std::int64_t weight = problem.weight_time[at(rank)];
    const std::int64_t last_input = problem.input_time[problem.stage_of(rank, 0)];
    std::int64_t forward_work = 0;
    std::int64_t input_work = 0;
    std::int64_t backwards_left = 0;
    for (std::int32_t chunk = 0; chunk < problem.chunks; ++chunk) {
      const std::int64_t left = problem.microbatches - forwards_[cell(rank, chunk)] +
                                (waits_for == CompactOptional(chunk) ? 1 : 0);
      forward_work += left * problem.time_of_move(rank, chunk);
      if (left > 0) {
        last_stage = std::max(
            last_stage, begin + forward_work + problem.way_to_end[problem.stage_of(rank, chunk)]);
      }
      const std::int32_t input = problem.chunks + chunk;
      const std::int64_t inputs = problem.microbatches - backwards_[cell(rank, chunk)] +
                                  (waits_for == CompactOptional(input) ? 1 : 0);
      input_work += inputs * problem.time_of_move(rank, input);
      backwards_left += inputs;
    }
    const std::int64_t worked = begin + forward_work + input_work + idle_for_gradient(rank);
    std::int64_t end = worked + (all - weights_[at(rank)]) * weight;
    if (backwards_left > 0) {
      upwards = std::max(worked, upwards + last_input + problem.send);
      end = std::max(end, upwards + weight);
    }
    if (end > problem.deadlines[at(rank)]) return false;
    score_.span = std::max(score_.span, end - problem.first_start[at(rank)]);
    score_.makespan = std::max(score_.makespan, end);
    score_.sum += end;
  }
  if (last_stage == kNever) return true;
  for (std::int32_t rank = 0; rank < problem.ranks; ++rank) {
    const std::int64_t end =
        last_stage + problem.way_back[at(rank)] + problem.weight_time[at(rank)];
    if (end > problem.deadlines[at(rank)]) return false;
    score_.span = std::max(score_.span, end - problem.first_start[at(rank)]);
    score_.makespan = std::max(score_.makespan, end);
  }
  return true;
}

}  // namespace stepsim
