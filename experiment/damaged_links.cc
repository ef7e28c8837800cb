#include "experiment/damaged_links.h"

#include "topology/topology.h"

namespace stepsim {

std::vector<DamagedEnds> damaged_ends(const ClusterSpec& cluster) {
  if (cluster.faults.links.empty()) return {};
  const BuiltTopology whole = build_topology(cluster.topology);
  std::vector<DamagedEnds> ends;
  for (const DamagedLink& damaged : damaged_links(cluster.faults, whole.fabric)) {
    const Link& link = whole.fabric.link(damaged.link);
    ends.push_back({link.from, link.to, damaged.capacity});
  }
  return ends;
}

}  // namespace stepsim
