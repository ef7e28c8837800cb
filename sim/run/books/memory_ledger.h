// MemoryLedger counts the bytes of every rank as they come and go, and remembers the peak.
//
// Changes of one instant are one change: a peak is looked at only when time moves on, so the order
// of simultaneous ops does not matter. The balance must be the resident bytes again at the end
// (always-on check).

#pragma once

#include <optional>
#include <vector>

#include "sim/base/ids.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

class MemoryLedger {
 public:
  explicit MemoryLedger(const OpGraph& graph);

  // By an op of the rank's program. REQUIRES: `now` is not before an earlier change of this rank;
  // the changes of an op at an instant follow each other.
  void change(RankId rank, Time now, OpId op, MemoryCategory category, Bytes bytes);  // +/-

  const MemoryBytes& balance(RankId rank) const { return states_[rank.index()].bytes; }

  // Takes the last instant of every rank into account.
  std::vector<MemoryPeak> peaks() const;

 private:
  struct Taken {
    std::optional<OpId> op{};
    Bytes bytes;
  };
  struct State {
    MemoryBytes bytes{};
    Bytes total;
    Time changed_at;
    Taken last{};  // at this instant
    Taken most{};
    MemoryPeak peak;
  };
  static void look(State& state);

  std::vector<State> states_;
};

}  // namespace stepsim
