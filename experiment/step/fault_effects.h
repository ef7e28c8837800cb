// fault_effects() says what the faults of a cluster do to a step: the links, the ranks behind them,
// and the traffic that waits for them. Reports and `stepsim compare` name them, since the breakdown
// spreads their cost over everything that waits: collectives that take longer hold their shares of
// all chips longer, so it shows as compute on ranks that are whole.
//
//   node5.gpu3-su0.leaf3   is down; behind it rank 43
//   dp gradients           310 ms a step instead of 165 ms, on node5.gpu2>su0.leaf2, among ranks ..
//
// The times are those of all collectives and messages of a step, each alone, with and without the
// faults. What of them is hidden, the breakdown knows.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "schedules/plan/axis.h"
#include "sim/base/ids.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"

namespace stepsim {

struct FaultyLink {
  std::string name;       // as the fault has it, "node5.gpu3-su0.leaf3"
  double capacity = 0;    // remaining share; 0: down
  std::size_t links = 0;  // one-way links that it names
  // Ranks on the chips that are nearest to an end of a link: its own chip where it has one, all
  // behind a leaf. Ascending.
  std::vector<RankId> ranks{};

  std::string text() const;  // "node5.gpu3-su0.leaf3 is down; behind it rank 43"
};

struct SlowedTraffic {
  std::string name;  // of the communicator, "dp gradients"
  Axis axis = Axis::kOther;
  std::vector<RankId> ranks{};  // of the group that loses most; of messages both
  std::size_t slowed = 0;       // groups that lose by the faults
  std::size_t groups = 0;       // of at least two ranks
  std::string link;             // that it waits for, with the faults
  double without_s = 0;         // of the group that loses most, a step
  double with_s = 0;

  // "dp gradients: 310 ms a step instead of 165 ms among ranks 3,7, .., which wait for LINK (1 of 4
  // groups is slower)"
  std::string text() const;
};

struct FaultEffects {
  std::vector<FaultyLink> links;       // in the order of the faults
  std::vector<SlowedTraffic> traffic;  // what loses most first
};

// `cluster`: of the experiment, with its faults. Empty without faults. O(different collectives x
// groups x links of their routes).
FaultEffects fault_effects(const Experiment& experiment, const Cluster& cluster,
                           const OpGraph& graph);

}  // namespace stepsim
