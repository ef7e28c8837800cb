#include "schedules/pipeline/search_state.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "schedules/pipeline/order_search.h"

namespace stepsim {

SearchProblem::SearchProblem(const OrderSearchRequest& request)
    : ranks(request.shape.stages),
      chunks(request.shape.chunks),
      microbatches(request.shape.microbatches),
      memory_limit(request.memory_limit),
      costs(request.costs),
      deadlines(request.deadlines) {
  const PipelineSchedule shape =
      schedule_by_rank(request.shape, [](std::int32_t) { return RankOrder(); });
  const std::int32_t stages = stage_count(shape);
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    rank_at.push_back(rank_of(shape, 0, stage));
    chunk_at.push_back(chunk_of(shape, 0, stage));
    is_local.push_back(stage > 0 && rank_at.back() == rank_at[static_cast<std::size_t>(stage - 1)]);
  }
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
      stage_of_.push_back(static_cast<std::size_t>(stepsim::stage_of(shape, rank, chunk)));
    }
    first_start.push_back(rank * (costs.forward + costs.send));
  }
  const auto last = static_cast<std::size_t>(stages - 1);
  way_to_end.assign(last + 1, costs.backward_input);
  std::vector<std::int64_t> back(last + 1, 0);  // from B on the last stage to B here
  for (std::size_t stage = last; stage-- > 0;) {
    const std::int64_t send = is_local[stage + 1] != 0 ? 0 : costs.send;
    way_to_end[stage] = way_to_end[stage + 1] + send + costs.forward;
    back[stage] = back[stage + 1] + send + costs.backward_input;
  }
  way_back.assign(back.begin(), back.begin() + ranks);
}

std::int64_t SearchProblem::time_of_move(std::int32_t move) const {
  if (is_weight(move)) return costs.backward_weight;
  return is_forward(move) ? costs.forward : costs.backward_input;
}

std::int64_t SearchProblem::ops() const {
  return std::int64_t{3} * ranks * chunks * microbatches;
}

std::size_t SearchProblem::counts_size() const {
  return static_cast<std::size_t>(ranks * (2 * chunks + 2));
}

SearchState::SearchState(const SearchProblem& problem)
    : problem_(&problem),
      forwards_(at(problem.ranks * problem.chunks), 0),
      backwards_(forwards_),
      weights_(at(problem.ranks), 0),
      waiting_(at(problem.ranks), kNothing),
      after_weight_(at(problem.ranks), 0),
      free_(at(problem.ranks), 0),
      activations_(problem.rank_at.size()),
      gradients_(problem.rank_at.size()) {
  update_bounds();
}

std::int64_t SearchState::backwards_of(std::int32_t rank) const {
  std::int64_t sum = 0;
  for (std::int32_t chunk = 0; chunk < problem_->chunks; ++chunk) {
    sum += backwards_[cell(rank, chunk)];
  }
  return sum;
}

std::int64_t SearchState::in_flight(std::int32_t rank) const {
  std::int64_t sum = -std::int64_t{weights_[at(rank)]};
  for (std::int32_t chunk = 0; chunk < problem_->chunks; ++chunk) {
    sum += forwards_[cell(rank, chunk)];
  }
  return sum;
}

std::int32_t SearchState::next_rank() const {
  std::int32_t next = kNothing;
  const std::int64_t weights = std::int64_t{problem_->microbatches} * problem_->chunks;
  for (std::int32_t rank = 0; rank < problem_->ranks; ++rank) {
    if (waiting_[at(rank)] != kNothing || weights_[at(rank)] == weights) continue;
    if (next == kNothing || free_[at(rank)] < free_[at(next)]) next = rank;
  }
  return next;
}

// Whether the rank may have it next in its list, whenever its input comes.
bool SearchState::can_run_now(std::int32_t rank, std::int32_t move) const {
  if (problem_->is_weight(move)) return weights_[at(rank)] < backwards_of(rank);
  const std::int32_t chunk = problem_->chunk_of_move(move);
  const std::size_t stage = problem_->stage_of(rank, chunk);
  if (problem_->is_forward(move)) {
    const std::int32_t count = forwards_[cell(rank, chunk)];
    if (count == problem_->microbatches || in_flight(rank) >= problem_->memory_limit) return false;
    return problem_->is_local[stage] == 0 ||
           forwards_[cell(rank, problem_->chunk_at[stage - 1])] > count;
  }
  const std::int32_t count = backwards_[cell(rank, chunk)];
  if (count >= forwards_[cell(rank, chunk)]) return false;
  return stage + 1 == problem_->rank_at.size() || problem_->is_local[stage + 1] == 0 ||
         backwards_[cell(rank, problem_->chunk_at[stage + 1])] > count;
}

// When the input of the next op of this kind is there, or kUnknown. REQUIRES: can_run_now() but for
// memory.
std::int64_t SearchState::arrival(std::int32_t rank, std::int32_t move) const {
  if (problem_->is_weight(move)) return 0;
  const std::size_t stage = problem_->stage_of(rank, problem_->chunk_of_move(move));
  if (problem_->is_forward(move)) {
    if (stage == 0 || problem_->is_local[stage] != 0) return 0;
    return activations_[stage].empty() ? kUnknown : activations_[stage].front();
  }
  if (stage + 1 == problem_->rank_at.size() || problem_->is_local[stage + 1] != 0) return 0;
  return gradients_[stage].empty() ? kUnknown : gradients_[stage].front();
}

bool SearchState::may_run(std::int32_t rank, std::int32_t move) const {
  if (!can_run_now(rank, move)) return false;
  if (after_weight_[at(rank)] == 0 || problem_->is_weight(move)) return true;
  // W before what could have run: not unless memory was in the way.
  const std::int64_t ready = arrival(rank, move);
  const bool was_ready =
      ready != kUnknown && ready <= free_[at(rank)] - problem_->costs.backward_weight;
  if (!was_ready) return true;
  return problem_->is_forward(move) && in_flight(rank) + 1 >= problem_->memory_limit;
}

// Whether another op of the rank could run from when it is free to `end`; it stands before the op
// `move`, which is in the list already.
bool SearchState::fits_before(std::int32_t rank, std::int32_t move, std::int64_t end) const {
  for (std::int32_t other = 0; other < problem_->moves(); ++other) {
    if (other == move) continue;
    // With several chunks an F that comes earlier may take the place of another chunk's.
    if (problem_->is_forward(other) && problem_->chunks > 1 && problem_->memory_binds()) continue;
    const std::int64_t time = problem_->time_of_move(other);
    if (free_[at(rank)] + time > end || !can_run_now(rank, other)) continue;
    const std::int64_t ready = arrival(rank, other);
    if (ready == kUnknown || std::max(free_[at(rank)], ready) + time > end) continue;
    return true;
  }
  return false;
}

// The rank that the rank waits for. REQUIRES: it waits.
std::int32_t SearchState::source_of(std::int32_t rank) const {
  const std::int32_t move = waiting_[at(rank)];
  const std::size_t stage = problem_->stage_of(rank, problem_->chunk_of_move(move));
  return problem_->rank_at[problem_->is_forward(move) ? stage - 1 : stage + 1];
}

bool SearchState::waits_for_itself(std::int32_t rank) const {
  std::int32_t other = source_of(rank);
  while (other != rank && waiting_[at(other)] != kNothing) other = source_of(other);
  return other == rank;
}

// Runs the op at the end of the rank's list if its input is known, and what that sets going.
bool SearchState::start(std::int32_t rank, std::int32_t move) {
  while (true) {
    const std::int64_t ready = arrival(rank, move);
    if (ready == kUnknown) {
      waiting_[at(rank)] = move;
      return !waits_for_itself(rank);
    }
    const bool is_weight = problem_->is_weight(move);
    const bool is_forward = problem_->is_forward(move);
    const std::int32_t chunk = problem_->chunk_of_move(move);
    const std::int64_t begin = std::max(free_[at(rank)], ready);
    std::int32_t& count = is_weight    ? weights_[at(rank)]
                          : is_forward ? forwards_[cell(rank, chunk)]
                                       : backwards_[cell(rank, chunk)];
    if (begin > free_[at(rank)]) {
      // What else could run is asked without the op itself.
      --count;
      const bool is_beaten = fits_before(rank, move, begin);
      ++count;
      if (is_beaten) return false;
    }
    waiting_[at(rank)] = kNothing;
    after_weight_[at(rank)] = is_weight ? 1 : 0;
    const std::int64_t end = begin + problem_->time_of_move(move);
    free_[at(rank)] = end;
    if (is_weight) return true;
    const std::size_t stage = problem_->stage_of(rank, chunk);
    const std::size_t stages = problem_->rank_at.size();
    if (is_forward && stage > 0 && problem_->is_local[stage] == 0) {
      activations_[stage].erase(activations_[stage].begin());
    }
    if (!is_forward && stage + 1 < stages && problem_->is_local[stage + 1] == 0) {
      gradients_[stage].erase(gradients_[stage].begin());
    }
    const bool is_sent = is_forward ? stage + 1 < stages && problem_->is_local[stage + 1] == 0
                                    : stage > 0 && problem_->is_local[stage] == 0;
    if (!is_sent) return true;
    const std::size_t to = is_forward ? stage + 1 : stage - 1;
    auto& queue = is_forward ? activations_[to] : gradients_[to];
    queue.push_back(end + problem_->costs.send);
    const std::int32_t reader = problem_->rank_at[to];
    const std::int32_t reads = problem_->chunk_at[to] + (is_forward ? 0 : problem_->chunks);
    if (waiting_[at(reader)] != reads || queue.size() > 1) return true;
    rank = reader;
    move = reads;
  }
}

bool SearchState::run(std::int32_t rank, std::int32_t move) {
  const std::int32_t chunk = problem_->chunk_of_move(move);
  if (problem_->is_weight(move)) {
    ++weights_[at(rank)];
  } else if (problem_->is_forward(move)) {
    ++forwards_[cell(rank, chunk)];
  } else {
    ++backwards_[cell(rank, chunk)];
  }
  return start(rank, move) && update_bounds();
}

// How many ops of a kind have run, at a stage.
std::int32_t SearchState::ran(bool is_forward, std::size_t stage) const {
  const std::int32_t rank = problem_->rank_at[stage];
  const std::int32_t chunk = problem_->chunk_at[stage];
  const std::int32_t move = is_forward ? chunk : problem_->chunks + chunk;
  return (is_forward ? forwards_ : backwards_)[cell(rank, chunk)] -
         (waiting_[at(rank)] == move ? 1 : 0);
}

// When the input of the next op of a kind is there at the earliest: the way of that micro-batch
// from where it is now, each rank on it first running what it must before.
std::int64_t SearchState::earliest_input(std::int32_t rank, std::int32_t move) const {
  const bool is_forward = problem_->is_forward(move);
  const std::size_t goal = problem_->stage_of(rank, problem_->chunk_of_move(move));
  const std::int32_t microbatch = ran(is_forward, goal);
  const std::size_t last = problem_->rank_at.size() - 1;
  std::int64_t time = 0;  // when the input of the next op on the way is there
  const auto pass = [&](bool forward, std::size_t stage) {
    const std::int64_t one = forward ? problem_->costs.forward : problem_->costs.backward_input;
    const std::int64_t before = microbatch - ran(forward, stage);
    const std::size_t crossed = forward ? stage + 1 : stage;  // the boundary behind it
    const bool is_sent = crossed > 0 && crossed <= last && problem_->is_local[crossed] == 0;
    time = std::max(time, free_[at(problem_->rank_at[stage])] + before * one) + one +
           (is_sent ? problem_->costs.send : 0);
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

// When the rank can go on at the earliest.
std::int64_t SearchState::earliest(std::int32_t rank) const {
  if (waiting_[at(rank)] == kNothing) return free_[at(rank)];
  return std::max(free_[at(rank)], earliest_input(rank, waiting_[at(rank)]));
}

// How long the rank will be idle for lack of gradients, whatever else it runs until then.
std::int64_t SearchState::idle_for_gradient(std::int32_t rank) const {
  if (waiting_[at(rank)] != kNothing) return 0;
  const std::int64_t due = backwards_of(rank) - weights_[at(rank)];
  const std::int64_t room = problem_->memory_limit - in_flight(rank) + due;
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t forwards_left = 0;
  std::int64_t gradient = kNever;
  for (std::int32_t chunk = 0; chunk < problem_->chunks; ++chunk) {
    forwards_left += problem_->microbatches - forwards_[cell(rank, chunk)];
    if (backwards_[cell(rank, chunk)] == problem_->microbatches) continue;
    gradient = std::min(gradient, earliest_input(rank, problem_->chunks + chunk));
  }
  if (gradient == kNever) return 0;
  const std::int64_t until_then = std::min(forwards_left, room) * problem_->costs.forward +
                                  due * problem_->costs.backward_weight;
  return std::max<std::int64_t>(0, gradient - until_then - free_[at(rank)]);
}

// False if a rank can't end in time.
bool SearchState::update_bounds() {
  const SearchProblem& problem = *problem_;
  const PipelineCosts& costs = problem.costs;
  const std::int64_t all = std::int64_t{problem.microbatches} * problem.chunks;
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min() / 2;
  std::int64_t last_stage = kNever;  // end of its last B at the earliest
  std::int64_t upwards = kNever;     // end of the last B of the ranks from here on
  score_ = {};
  for (std::int32_t rank = problem.ranks; rank-- > 0;) {
    const std::int64_t begin = earliest(rank);
    const std::int32_t waits_for = waiting_[at(rank)];
    std::int64_t forward_work = 0;
    for (std::int32_t chunk = 0; chunk < problem.chunks; ++chunk) {
      const std::int64_t left =
          problem.microbatches - forwards_[cell(rank, chunk)] + (waits_for == chunk ? 1 : 0);
      forward_work += left * costs.forward;
      if (left > 0) {
        last_stage = std::max(
            last_stage, begin + forward_work + problem.way_to_end[problem.stage_of(rank, chunk)]);
      }
    }
    const std::int64_t backwards_left =
        all - backwards_of(rank) + (waits_for >= problem.chunks ? 1 : 0);
    const std::int64_t work = forward_work + backwards_left * costs.backward_input;
    const std::int64_t worked = begin + work + idle_for_gradient(rank);
    std::int64_t end = worked + (all - weights_[at(rank)]) * costs.backward_weight;
    if (backwards_left > 0) {
      upwards = std::max(worked, upwards + costs.backward_input + costs.send);
      end = std::max(end, upwards + costs.backward_weight);
    }
    if (end > problem.deadlines[at(rank)]) return false;
    score_.span = std::max(score_.span, end - problem.first_start[at(rank)]);
    score_.makespan = std::max(score_.makespan, end);
    score_.sum += end;
  }
  if (last_stage == kNever) return true;
  for (std::int32_t rank = 0; rank < problem.ranks; ++rank) {
    const std::int64_t end = last_stage + problem.way_back[at(rank)] + costs.backward_weight;
    if (end > problem.deadlines[at(rank)]) return false;
    score_.span = std::max(score_.span, end - problem.first_start[at(rank)]);
    score_.makespan = std::max(score_.makespan, end);
  }
  return true;
}

void SearchState::pack(PackedState& packed) const {
  packed.counts.clear();
  packed.counts.insert(packed.counts.end(), forwards_.begin(), forwards_.end());
  packed.counts.insert(packed.counts.end(), backwards_.begin(), backwards_.end());
  packed.counts.insert(packed.counts.end(), weights_.begin(), weights_.end());
  packed.counts.insert(packed.counts.end(), waiting_.begin(), waiting_.end());
  packed.times.clear();
  packed.times.insert(packed.times.end(), free_.begin(), free_.end());
  // After a W what could have run before it may not run: then a W is no better than none.
  for (const char flag : after_weight_) packed.times.push_back(flag);
  for (std::size_t stage = 0; stage < activations_.size(); ++stage) {
    // An arrival before its rank is free is as good as any other such.
    const std::size_t rank = at(problem_->rank_at[stage]);
    const std::int64_t matters =
        free_[rank] - (after_weight_[rank] != 0 ? problem_->costs.backward_weight : 0);
    for (const auto* queue : {&activations_[stage], &gradients_[stage]}) {
      for (const std::int64_t time : *queue) packed.times.push_back(std::max(time, matters));
    }
  }
}

void SearchState::unpack(std::span<const std::int32_t> counts,
                         std::span<const std::int64_t> times) {
  auto count = counts.begin();
  for (auto* part : {&forwards_, &backwards_, &weights_, &waiting_}) {
    const auto end = count + static_cast<std::ptrdiff_t>(part->size());
    part->assign(count, end);
    count = end;
  }
  auto time = times.begin();
  for (std::int64_t& value : free_) value = *time++;
  for (char& flag : after_weight_) flag = static_cast<char>(*time++);
  // How many are on their way follows from the counts of ops that have run.
  const std::size_t stages = activations_.size();
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const std::int32_t forwards =
        stage == 0 || problem_->is_local[stage] != 0 ? 0 : ran(true, stage - 1) - ran(true, stage);
    const std::int32_t backwards = stage + 1 == stages || problem_->is_local[stage + 1] != 0
                                       ? 0
                                       : ran(false, stage + 1) - ran(false, stage);
    assert(forwards >= 0 && backwards >= 0);
    activations_[stage].assign(time, time + forwards);
    time += forwards;
    gradients_[stage].assign(time, time + backwards);
    time += backwards;
  }
  assert(time == times.end());
}

}  // namespace stepsim
