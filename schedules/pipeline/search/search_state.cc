#include "schedules/pipeline/search/search_state.h"

#include <algorithm>
#include <cassert>

namespace stepsim {

SearchState::SearchState(const SearchProblem& problem)
    : problem_(&problem),
      forwards_(at(problem.ranks * problem.chunks), 0),
      backwards_(forwards_),
      weights_(at(problem.ranks), 0),
      waiting_(at(problem.ranks)),
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

std::optional<std::int32_t> SearchState::next_rank() const {
  std::optional<std::int32_t> next;
  const std::int64_t weights = std::int64_t{problem_->microbatches} * problem_->chunks;
  for (std::int32_t rank = 0; rank < problem_->ranks; ++rank) {
    if (waiting_[at(rank)] || weights_[at(rank)] == weights) continue;
    if (!next || free_[at(rank)] < free_[at(*next)]) next = rank;
  }
  return next;
}

// Returns whether the op may be next in the rank's list, whenever its input arrives.
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

// Returns when the input of the next op of this kind is there; nullopt if that is not known.
// REQUIRES: can_run_now(), apart from memory.
std::optional<std::int64_t> SearchState::arrival(std::int32_t rank, std::int32_t move) const {
  const auto first = [](const std::vector<std::int64_t>& queue) {
    return queue.empty() ? std::nullopt : std::optional(queue.front());
  };
  if (problem_->is_weight(move)) return 0;
  const std::size_t stage = problem_->stage_of(rank, problem_->chunk_of_move(move));
  if (problem_->is_forward(move)) {
    if (stage == 0 || problem_->is_local[stage] != 0) return 0;
    return first(activations_[stage]);
  }
  if (stage + 1 == problem_->rank_at.size() || problem_->is_local[stage + 1] != 0) return 0;
  return first(gradients_[stage]);
}

bool SearchState::may_run(std::int32_t rank, std::int32_t move) const {
  if (!can_run_now(rank, move)) return false;
  if (after_weight_[at(rank)] == 0 || problem_->is_weight(move)) return true;
  // A W may precede an op that could have run instead only if memory prevented that op.
  const std::optional<std::int64_t> ready = arrival(rank, move);
  const bool was_ready = ready && *ready <= free_[at(rank)] - problem_->weight_time[at(rank)];
  if (!was_ready) return true;
  return problem_->is_forward(move) && in_flight(rank) + 1 >= problem_->memory_limit;
}

// Returns whether another op of the rank could run between the time it is free and `end`. That op
// would stand before the op `move`, which is in the list already.
bool SearchState::fits_before(std::int32_t rank, std::int32_t move, std::int64_t end) const {
  for (std::int32_t other = 0; other < problem_->moves(); ++other) {
    if (other == move) continue;
    // With several chunks an earlier F may take the place in memory of another chunk's F.
    if (problem_->is_forward(other) && problem_->chunks > 1 && problem_->memory_binds()) continue;
    const std::int64_t time = problem_->time_of_move(rank, other);
    if (free_[at(rank)] + time > end || !can_run_now(rank, other)) continue;
    const std::optional<std::int64_t> ready = arrival(rank, other);
    if (!ready || std::max(free_[at(rank)], *ready) + time > end) continue;
    return true;
  }
  return false;
}

// Returns the rank that this rank waits for. REQUIRES: it waits.
std::int32_t SearchState::source_of(std::int32_t rank) const {
  const std::int32_t move = *waiting_[at(rank)];
  const std::size_t stage = problem_->stage_of(rank, problem_->chunk_of_move(move));
  return problem_->rank_at[problem_->is_forward(move) ? stage - 1 : stage + 1];
}

bool SearchState::waits_for_itself(std::int32_t rank) const {
  std::int32_t other = source_of(rank);
  while (other != rank && waiting_[at(other)]) other = source_of(other);
  return other == rank;
}

// Runs the op at the end of the rank's list if its input is known, and all ops that this starts.
bool SearchState::start(std::int32_t rank, std::int32_t move) {
  while (true) {
    const std::optional<std::int64_t> ready = arrival(rank, move);
    if (!ready) {
      waiting_[at(rank)] = move;
      return !waits_for_itself(rank);
    }
    const bool is_weight = problem_->is_weight(move);
    const bool is_forward = problem_->is_forward(move);
    const std::int32_t chunk = problem_->chunk_of_move(move);
    const std::int64_t begin = std::max(free_[at(rank)], *ready);
    std::int32_t& count = is_weight    ? weights_[at(rank)]
                          : is_forward ? forwards_[cell(rank, chunk)]
                                       : backwards_[cell(rank, chunk)];
    if (begin > free_[at(rank)]) {
      // fits_before() must not count the op itself.
      --count;
      const bool is_beaten = fits_before(rank, move, begin);
      ++count;
      if (is_beaten) return false;
    }
    waiting_[at(rank)] = {};
    after_weight_[at(rank)] = is_weight ? 1 : 0;
    const std::int64_t end = begin + problem_->time_of_move(rank, move);
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
    queue.push_back(end + problem_->send);
    const std::int32_t reader = problem_->rank_at[to];
    const std::int32_t reads = problem_->chunk_at[to] + (is_forward ? 0 : problem_->chunks);
    if (waiting_[at(reader)] != CompactOptional(reads) || queue.size() > 1) return true;
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

void SearchState::pack(PackedState& packed) const {
  packed.counts.clear();
  packed.counts.insert(packed.counts.end(), forwards_.begin(), forwards_.end());
  packed.counts.insert(packed.counts.end(), backwards_.begin(), backwards_.end());
  packed.counts.insert(packed.counts.end(), weights_.begin(), weights_.end());
  for (const auto& move : waiting_) packed.counts.push_back(move ? *move + 1 : 0);
  packed.times.clear();
  packed.times.insert(packed.times.end(), free_.begin(), free_.end());
  // After a W, ops that could have run before it may not run. So a state whose last op is a W is
  // never better than one without.
  for (const char flag : after_weight_) packed.times.push_back(flag);
  for (std::size_t stage = 0; stage < activations_.size(); ++stage) {
    // All arrivals before their rank is free are equally good.
    const std::size_t rank = at(problem_->rank_at[stage]);
    const std::int64_t matters =
        free_[rank] - (after_weight_[rank] != 0 ? problem_->weight_time[rank] : 0);
    for (const auto* queue : {&activations_[stage], &gradients_[stage]}) {
      for (const std::int64_t time : *queue) packed.times.push_back(std::max(time, matters));
    }
  }
}

void SearchState::unpack(std::span<const std::int32_t> counts,
                         std::span<const std::int64_t> times) {
  auto count = counts.begin();
  for (auto* part : {&forwards_, &backwards_, &weights_}) {
    const auto end = count + static_cast<std::ptrdiff_t>(part->size());
    part->assign(count, end);
    count = end;
  }
  for (auto& move : waiting_) {
    move = *count == 0 ? CompactOptional<std::int32_t>() : *count - 1;
    ++count;
  }
  auto time = times.begin();
  for (std::int64_t& value : free_) value = *time++;
  for (char& flag : after_weight_) flag = static_cast<char>(*time++);
  // The number of messages on their way follows from the counts of ops that have run.
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
