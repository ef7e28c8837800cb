// Streams decides when an op may start. Each rank has the streams of its program; a stream runs
// its ops in order, step after step; an op starts when the previous op of its stream and all its
// dependencies have ended.
//
// Streams finish in order, so the state of a rank is one counter a stream, and a dependency is a
// comparison with a counter. A stream whose next op is not ready waits for one dependency at a
// time and is woken by the stream that ends it: O(1) amortised a dependency, memory
// O(ranks x streams).
//
// Streams are named by their position among the streams of all ranks of the job.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/program/op_graph.h"
#include "sim/run/ops/job.h"

namespace stepsim {

// RankStreams are the streams of one rank, whose numbers follow one another.
class RankStreams {
 public:
  class Iterator {
   public:
    explicit Iterator(std::uint32_t stream) : stream_(stream) {}
    RankStreamId operator*() const { return RankStreamId(stream_); }
    Iterator& operator++() {
      ++stream_;
      return *this;
    }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    std::uint32_t stream_;
  };

  RankStreams(std::uint32_t first, std::uint32_t end) : first_(first), end_(end) {}
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(end_); }

 private:
  std::uint32_t first_;
  std::uint32_t end_;
};

class Streams {
 public:
  // REQUIRES: steps >= 1. Throws std::length_error above 65,535 streams a program.
  Streams(const Job& job, std::uint32_t steps);

  std::uint32_t count() const { return static_cast<std::uint32_t>(states_.size()); }
  // Returns the streams of a rank, in the order of its program.
  RankStreams of(RankId rank) const {
    return {first_of_rank_[rank.index()], first_of_rank_[rank.index() + 1]};
  }
  RankId rank_of(RankStreamId stream) const { return states_[stream.index()].rank; }
  const Program& program_of(RankStreamId stream) const { return *states_[stream.index()].program; }
  // Returns the stream in its program.
  const Stream& stream(RankStreamId stream) const {
    const State& state = states_[stream.index()];
    return state.program->streams[state.local];
  }
  bool computes(RankStreamId stream) const { return states_[stream.index()].computes; }

  // Returns the op that runs or comes next, as its position in the rank's program. REQUIRES:
  // !finished().
  OpId op_id(RankStreamId stream) const { return id_of_op(states_[stream.index()]); }
  const Op& op(RankStreamId stream) const {
    const State& state = states_[stream.index()];
    return state.program->ops[id_of_op(state).index()];
  }
  std::uint32_t position(RankStreamId stream) const { return states_[stream.index()].position; }
  std::uint32_t step(RankStreamId stream) const { return states_[stream.index()].step; }
  bool running(RankStreamId stream) const { return states_[stream.index()].running; }
  // Returns the number of its ops that have ended, over all steps.
  std::uint64_t ended(RankStreamId stream) const { return states_[stream.index()].completed; }
  bool finished(RankStreamId stream) const { return states_[stream.index()].step == steps_; }
  Time started_at(RankStreamId stream) const {
    return states_[stream.index()].started_at;
  }  // of op()
  Time ended_at(RankStreamId stream) const {
    return states_[stream.index()].ended_at;
  }  // of the last op

  // Returns whether the next op may start now. If not, the stream is woken when that may have
  // changed.
  bool ready(RankStreamId stream);

  // Returns the stream whose op released the one that may start at `now`. Among the stream itself
  // and those it depends on, it is the one whose awaited op ended at `now`, lowest op id first; the
  // stream itself at the start of a run.
  RankStreamId releaser(RankStreamId stream, Time now) const;

  // Returns whether an op of the stream has ended at `now`.
  bool ended_at_instant(RankStreamId stream, Time now) const {
    const State& state = states_[stream.index()];
    return state.completed > 0 && state.ended_at == now;
  }

  void start(RankStreamId stream, Time now);

  // Ends the running op and appends the streams to check again to `woken`: this one and those whose
  // wait is over.
  void end(RankStreamId stream, Time now, std::vector<RankStreamId>& woken);

  // Passes over `ops` ops of a stream, which have ended elsewhere (repeats.h). REQUIRES: they are
  // of this step, and others follow them; ready() is asked again.
  void skip(RankStreamId stream, std::uint64_t ops);

  // Returns the stream that an op of `stream` depends on, and the number of ops on it that must
  // have ended, over all steps, for an op of this step.
  RankStreamId depended_on(RankStreamId stream, const Dependency& dependency) const {
    return RankStreamId(first_of_rank_[rank_of(stream).index()] + dependency.stream.index());
  }
  std::uint64_t needed(RankStreamId stream, const Dependency& dependency) const {
    return needed(states_[depended_on(stream, dependency).index()], dependency,
                  states_[stream.index()].step);
  }

  // Wait is the dependency that keeps the next op from starting. REQUIRES: ready() has just
  // returned false.
  struct Wait {
    RankStreamId stream;
    std::uint64_t until;  // number of ops on it that must have ended, over all steps
  };
  Wait wait_of(RankStreamId stream) const {
    const State& state = states_[stream.index()];
    return {RankStreamId(first_of_rank_[state.rank.index()] + state.waits_on), state.waits_until};
  }

  std::uint64_t ops_ended() const { return ops_ended_; }
  std::uint64_t ops_total() const { return ops_total_; }
  // Returns how often an op started while another one ran, or before the last one had ended. This
  // is always 0.
  std::uint64_t overlaps() const { return overlaps_; }

 private:
  struct State {
    const Program* program;
    Time started_at;
    Time ended_at;
    std::uint64_t completed = 0;  // ops ended, over all steps
    std::uint64_t before = 0;     // completed before the instant `ended_at`
    std::uint64_t waits_until = 0;
    std::uint64_t waiters = 0;  // local streams that may wait for this one: bit local % 64
    RankId rank;
    std::uint32_t first_op = 0;
    std::uint32_t ops = 0;  // ops per step
    std::uint32_t position = 0;
    std::uint32_t step = 0;
    std::uint32_t next_dependency = 0;  // of op(); earlier ones are known to have ended
    std::uint16_t local = 0;
    std::uint16_t waits_on = 0;
    bool running = false;
    bool computes = false;
  };

  static OpId id_of_op(const State& state) { return OpId(state.first_op + state.position); }
  static std::uint64_t needed(const State& depended_on, const Dependency& dependency,
                              std::uint32_t step) {
    if (dependency.previous_step && step == 0) return 0;
    return std::uint64_t{depended_on.ops} * (dependency.previous_step ? step - 1 : step) +
           dependency.position + 1;
  }

  std::uint32_t steps_;
  std::vector<State> states_;
  std::vector<std::uint32_t> first_of_rank_;
  std::uint64_t ops_ended_ = 0;
  std::uint64_t ops_total_ = 0;
  std::uint64_t overlaps_ = 0;
};

}  // namespace stepsim
