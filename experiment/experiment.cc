#include "experiment/experiment.h"

#include <utility>

namespace stepsim {
namespace {

void check_host(const Experiment& experiment, std::vector<Problem>& problems) {
  const ParallelPlan& plan = experiment.plan;
  if (!plan.offloads() || experiment.cluster.host.given()) return;
  problems.push_back({plan.offload_optimizer ? "offload_optimizer" : "offload_activations",
                      "needs a host: " + experiment.cluster.chip.name +
                          " has none in the catalog; give cluster.host, as in host { "
                          "link_bandwidth: \"25GB/s\" memory_bandwidth: \"300GB/s\" "
                          "memory_capacity: \"1TB\" }"});
}

}  // namespace

std::vector<Problem> check(const Experiment& experiment, const Places& places) {
  std::vector<Problem> of_plan = check(experiment.plan, experiment.model, places);
  for (Problem& problem : check(experiment.plan, experiment.cluster.chip)) {
    of_plan.push_back(std::move(problem));
  }
  check_host(experiment, of_plan);
  std::vector<Problem> problems = under("plan", std::move(of_plan));
  for (Problem& problem :
       under("variation", check(experiment.variation, experiment.plan.ranks()))) {
    problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace stepsim
