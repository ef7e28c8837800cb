#include "experiment/build_cluster.h"

#include <utility>

namespace stepsim {

Cluster build_cluster(const ClusterSpec& spec, bool with_hosts) {
  return build_cluster(spec, build_topology(spec.topology, spec.faults), with_hosts);
}

Cluster cluster_for_steps(const Experiment& experiment) {
  const ClusterSpec& spec = experiment.cluster;
  return cluster_for_steps(experiment, build_topology(spec.topology, spec.faults));
}

Cluster cluster_for_steps(const Experiment& experiment, BuiltTopology built) {
  Cluster cluster =
      build_cluster(experiment.cluster, std::move(built), experiment.plan.offload.any());
  const KernelChoices& kernels = experiment.plan.kernels;
  const bool trains = !experiment.plan.is_inference();
  if (trains) {
    cluster.chip.efficiency = cluster.chip.efficiency.in_training(kernels.attention_library);
  }
  const ChipSpec slowest = slowest_of(experiment.plan.mesh.ranks(), cluster.chip);
  cluster.chip = with_sm_margin(sustained(slowest, trains), kernels.sm_margin);
  return cluster;
}

Cluster build_cluster(const ClusterSpec& spec, BuiltTopology built, bool with_hosts) {
  Cluster cluster{.fabric = std::move(built.fabric),
                  .router = std::move(built.router),
                  .places = std::move(built.places),
                  .chip = spec.chip,
                  .library = spec.library};
  if (spec.switch_adders) {
    cluster.adders = add_adders(*spec.switch_adders, cluster.fabric);
  }
  if (with_hosts) cluster.hosts = add_hosts(spec.host, cluster.places, cluster.fabric);
  return cluster;
}

}  // namespace stepsim
