// Streams decides when an op may start. Each rank has the streams of its program; a stream runs
// its ops in order, step after step; an op starts when the previous op of its stream and all its
// dependencies have ended.
//
// Streams finish in order, so the state of a rank is one counter a stream, and a dependency is a
// comparison with a counter. A stream whose next op is not ready waits for one dependency at a
// time and is woken by the stream that ends it: O(1) amortised a dependency, memory
// O(ranks x streams).
//
// A stream is named here by its index among the streams of all ranks.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/units.h"
#include "sim/program/op_graph.h"

namespace stepsim {

class Streams {
 public:
  // REQUIRES: steps >= 1. Throws std::length_error above 65,535 streams a program.
  Streams(const OpGraph& graph, std::uint32_t steps);

  std::uint32_t count() const { return static_cast<std::uint32_t>(states_.size()); }
  std::uint32_t first_of(std::uint32_t rank) const { return first_of_rank_[rank]; }
  std::uint32_t rank_of(std::uint32_t stream) const { return states_[stream].rank; }
  std::uint32_t local(std::uint32_t stream) const { return states_[stream].local; }
  const Program& program_of(std::uint32_t stream) const { return *states_[stream].program; }
  bool computes(std::uint32_t stream) const { return states_[stream].computes; }

  // The op that runs or comes next, as an op of the rank's program. REQUIRES: !finished().
  std::uint32_t op(std::uint32_t stream) const {
    return states_[stream].first_op + states_[stream].position;
  }
  std::uint32_t position(std::uint32_t stream) const { return states_[stream].position; }
  std::uint32_t step(std::uint32_t stream) const { return states_[stream].step; }
  bool running(std::uint32_t stream) const { return states_[stream].running; }
  bool finished(std::uint32_t stream) const { return states_[stream].step == steps_; }
  Time started_at(std::uint32_t stream) const { return states_[stream].started_at; }  // of op()
  Time ended_at(std::uint32_t stream) const { return states_[stream].ended_at; }  // of the last op

  // Whether the next op may start now; if not, the stream is woken when that may have changed.
  bool ready(std::uint32_t stream);

  // The stream whose op released the one that may start at `now`: of the stream itself and those
  // it depends on, the one that ended at `now`, lowest op id first; itself at the start of a run.
  std::uint32_t releaser(std::uint32_t stream, Time now) const;

  void start(std::uint32_t stream, Time now);

  // Ends the running op and appends to `woken` the streams to be looked at again: this one and
  // those whose wait is over.
  void end(std::uint32_t stream, Time now, std::vector<std::uint32_t>& woken);

  // The dependency that keeps the next op from starting. REQUIRES: ready() has just said no.
  struct Wait {
    std::uint32_t stream;
    std::uint64_t until;  // ops that must have ended on it, over all steps
  };
  Wait wait_of(std::uint32_t stream) const {
    const State& state = states_[stream];
    return {first_of_rank_[state.rank] + state.waits_on, state.waits_until};
  }

  std::uint64_t ops_ended() const { return ops_ended_; }
  std::uint64_t ops_total() const { return ops_total_; }
  // Times that an op started while another one ran, or before the last one had ended: always 0.
  std::uint64_t overlaps() const { return overlaps_; }

 private:
  struct State {
    const Program* program;
    Time started_at;
    Time ended_at;
    std::uint64_t completed = 0;  // ops ended, over all steps
    std::uint64_t waits_until = 0;
    std::uint64_t waiters = 0;  // local streams that may wait for this one: bit local % 64
    std::uint32_t rank = 0;
    std::uint32_t first_op = 0;
    std::uint32_t ops = 0;  // in a step
    std::uint32_t position = 0;
    std::uint32_t step = 0;
    std::uint32_t next_dependency = 0;  // of op(): those before it are known to have ended
    std::uint16_t local = 0;
    std::uint16_t waits_on = 0;
    bool running = false;
    bool computes = false;
  };

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
