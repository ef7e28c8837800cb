// MemoryLedger counts the bytes of every rank as they appear and disappear, and remembers the peak.
//
// Changes of one instant count as one change: a peak is recorded only when time moves on, so the
// order of simultaneous ops does not matter, nor that of an op's changes between those of others.
// The peak's op is the one that has taken most at its instant. Of equal peaks the first counts. At
// the end the balance must be the resident bytes again (always-on check).

#pragma once

#include <optional>
#include <vector>

#include "sim/base/ids.h"
#include "sim/program/op_graph.h"
#include "sim/run/ops/job.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

class MemoryLedger {
 public:
  explicit MemoryLedger(const Job& job);

  // Books a change by an op of the rank's program. REQUIRES: `now` is not before an earlier change
  // of this rank.
  void change(RankId rank, Time now, OpId op, MemoryCategory category, Bytes bytes);  // +/-

  // What comes at `to` belongs to the instant `from`: what lies in between only repeats what was
  // before, so that this instant has no peak that was not seen before.
  void skip(Time from, Time to);

  const MemoryBytes& balance(RankId rank) const { return states_[rank.index()].bytes; }

  // Returns the peaks, including the last instant of every rank.
  std::vector<MemoryPeak> peaks() const;

 private:
  struct Taken {
    OpId op{};
    Bytes bytes;
  };
  struct State {
    MemoryBytes bytes{};
    Bytes total;
    Time changed_at;
    std::vector<Taken> taken{};  // at this instant, by op
    MemoryPeak peak;
  };
  static void look(State& state);

  std::vector<State> states_;
};

}  // namespace stepsim
