#include "experiment/experiment.h"

#include <utility>

#include "schedules/plan/keys/key_groups.h"

namespace stepsim {
namespace {

void check_host(const OffloadPlan& offload, const ClusterSpec& cluster,
                std::vector<Problem>& problems) {
  if (!offload.any() || cluster.host.given()) return;
  const char* const key = offload.optimizer     ? "offload_optimizer"
                          : offload.activations ? "offload_activations"
                                                : "copy_checkpoint";
  problems.push_back({key, "needs a host: " + cluster.chip.name +
                               " has none in the catalog; give cluster.host, as in host { "
                               "link_bandwidth: \"25GB/s\" memory_bandwidth: \"300GB/s\" "
                               "memory_capacity: \"1TB\" }"});
}

}  // namespace

std::vector<Problem> check(const ParallelPlan& plan, const ModelSpec& model,
                           const ClusterSpec& cluster, const Places& places) {
  std::vector<Problem> of_plan = check(plan, model, places);
  for (Problem& problem : check(plan, cluster.chip)) of_plan.push_back(std::move(problem));
  check_host(plan.offload, cluster, of_plan);
  return with_groups(std::move(of_plan));
}

std::vector<Problem> check(const Experiment& experiment, const Places& places) {
  std::vector<Problem> problems =
      check(experiment.plan, experiment.model, experiment.cluster, places);
  for (Problem& problem :
       under("variation", check(experiment.variation, experiment.plan.mesh.ranks()))) {
    problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace stepsim
