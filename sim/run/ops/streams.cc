#include "sim/run/ops/streams.h"

#include <bit>
#include <cassert>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>

namespace stepsim {

Streams::Streams(const Job& job, std::uint32_t steps) : steps_(steps) {
  first_of_rank_.reserve(job.ranks().size() + 1);
  for (std::uint32_t rank = 0; rank < job.ranks().size(); ++rank) {
    const Program& program = job.program(RankId(rank));
    if (program.streams.size() > std::numeric_limits<std::uint16_t>::max()) {
      throw std::length_error("a program may have up to 65535 streams");
    }
    first_of_rank_.push_back(count());
    for (std::size_t s = 0; s < program.streams.size(); ++s) {
      const Stream& stream = program.streams[s];
      State state;
      state.program = &program;
      state.rank = RankId(rank);
      state.first_op = stream.first_op;
      state.ops = stream.ops;
      state.local = static_cast<std::uint16_t>(s);
      state.computes = stream.computes;
      if (stream.ops == 0) state.step = steps;
      states_.push_back(state);
      ops_total_ += std::uint64_t{stream.ops} * steps;
    }
  }
  first_of_rank_.push_back(count());
}

bool Streams::ready(RankStreamId stream) {
  State& state = states_[stream.index()];
  if (state.running || state.step == steps_) return false;
  const std::span<const Dependency> dependencies = state.program->dependencies_of(id_of_op(state));
  State* const of_rank = &states_[first_of_rank_[state.rank.index()]];
  for (; state.next_dependency < dependencies.size(); ++state.next_dependency) {
    const Dependency& dependency = dependencies[state.next_dependency];
    State& depended_on = of_rank[dependency.stream.index()];
    const std::uint64_t until = needed(depended_on, dependency, state.step);
    if (depended_on.completed < until) {
      state.waits_on = static_cast<std::uint16_t>(dependency.stream.index());
      state.waits_until = until;
      depended_on.waiters |= std::uint64_t{1} << state.local % 64;
      return false;
    }
  }
  return true;
}

RankStreamId Streams::releaser(RankStreamId stream, Time now) const {
  const State& state = states_[stream.index()];
  const std::uint32_t first = first_of_rank_[state.rank.index()];
  RankStreamId best = stream;
  std::optional<std::uint32_t> best_op;
  if (state.completed > 0 && state.ended_at == now) {
    best_op = state.first_op + (state.position == 0 ? state.ops : state.position) - 1;
  }
  for (const Dependency& dependency : state.program->dependencies_of(id_of_op(state))) {
    const State& depended_on = states_[first + dependency.stream.index()];
    const std::uint32_t op = depended_on.first_op + dependency.position;
    const std::uint64_t until = needed(depended_on, dependency, state.step);
    if (depended_on.ended_at == now && (!best_op || op < *best_op) &&
        depended_on.completed >= until && depended_on.before < until) {
      best = RankStreamId(first + dependency.stream.index());
      best_op = op;
    }
  }
  return best;
}

void Streams::start(RankStreamId stream, Time now) {
  State& state = states_[stream.index()];
  if (state.running || now < state.ended_at) ++overlaps_;
  state.running = true;
  state.started_at = now;
}

void Streams::skip(RankStreamId stream, std::uint64_t ops) {
  State& state = states_[stream.index()];
  assert(state.position + ops < state.ops);
  state.position += static_cast<std::uint32_t>(ops);
  state.completed += ops;
  state.before += ops;
  state.next_dependency = 0;
  ops_ended_ += ops;
}

void Streams::end(RankStreamId stream, Time now, std::vector<RankStreamId>& woken) {
  State& state = states_[stream.index()];
  assert(state.running);
  state.running = false;
  if (state.ended_at != now) state.before = state.completed;
  state.ended_at = now;
  state.next_dependency = 0;
  ++state.completed;
  ++ops_ended_;
  if (++state.position == state.ops) {
    state.position = 0;
    ++state.step;
  }
  woken.push_back(stream);
  const std::uint32_t first = first_of_rank_[state.rank.index()];
  const std::uint32_t behind = first_of_rank_[state.rank.index() + 1];
  for (std::uint64_t left = state.waiters; left != 0; left &= left - 1) {
    const auto bit = static_cast<std::uint32_t>(std::countr_zero(left));
    bool waits = false;
    for (std::uint32_t waiter = first + bit; waiter < behind; waiter += 64) {
      if (states_[waiter].waits_on != state.local) continue;
      if (state.completed >= states_[waiter].waits_until) {
        woken.emplace_back(waiter);
      } else {
        waits = true;
      }
    }
    if (!waits) state.waiters &= ~(std::uint64_t{1} << bit);
  }
}

}  // namespace stepsim
