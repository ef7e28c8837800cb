#include <utility>

#include "proto/experiment.h"
#include "topology/topology.h"

namespace stepsim {

Cluster build_cluster(const ClusterSpec& spec, bool with_hosts) {
  BuiltTopology built = build_topology(spec.topology, spec.faults);
  Cluster cluster{.fabric = std::move(built.fabric),
                  .router = std::move(built.router),
                  .places = std::move(built.places),
                  .chip = spec.chip,
                  .library = spec.library};
  if (spec.switch_adders.value() > 0) {
    cluster.adders = add_adders(spec.switch_adders, cluster.fabric);
  }
  if (with_hosts) cluster.hosts = add_hosts(spec.host, cluster.places, cluster.fabric);
  return cluster;
}

}  // namespace stepsim
