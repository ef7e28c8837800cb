// One collective of all chips of an idle cluster, for tests of its time.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/hardware/group_shape.h"
#include "sim/program/graph_by_hand.h"
#include "sim/run/collectives/collective_plan.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"

namespace stepsim {

// Returns the graph of one collective. `chips`: the ranks; empty: all chips of the cluster.
inline OpGraph graph_of(const Cluster& cluster, const CollectiveWork& work,
                        const std::vector<std::uint32_t>& chips = {}) {
  const auto ranks =
      static_cast<std::uint32_t>(chips.empty() ? cluster.places.chips.size() : chips.size());
  GraphByHand hand(ranks);
  for (std::uint32_t rank = 0; rank < chips.size(); ++rank) {
    hand.graph().ranks[rank].chip = chips[rank];
  }
  const CommunicatorId all = hand.communicator();
  CollectiveWork placed = work;
  placed.communicator = all;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    hand.collective(rank, hand.stream(rank, "collective"), placed);
  }
  return hand.build();
}

inline double simulated(const Cluster& cluster, const CollectiveWork& work, Granularity granularity,
                        Fidelity fidelity = Fidelity::kFlow) {
  const OpGraph graph = graph_of(cluster, work);
  return to_seconds(
      simulate(graph, cluster, {.fidelity = fidelity, .granularity = granularity}).step_time);
}

// Returns the way that is taken in the group of these chips; empty: of all chips.
inline CollectiveWay way_of(const Cluster& cluster, const CollectiveWork& work,
                            const std::vector<std::uint32_t>& chips = {}) {
  const OpGraph graph = graph_of(cluster, work, chips);
  CollectivePlans plans(graph, cluster, Granularity::kPipelined, Fidelity::kFlow);
  return plans.chosen_for(CollectiveWorkId(0), GroupId(0)).way;
}

inline std::vector<std::uint32_t> all_chips(const Cluster& cluster) {
  std::vector<std::uint32_t> chips;
  for (std::uint32_t chip = 0; chip < cluster.places.chips.size(); ++chip) chips.push_back(chip);
  return chips;
}

inline GroupShape shape_of(const Cluster& cluster) {
  return describe(cluster, all_chips(cluster));
}

}  // namespace stepsim
