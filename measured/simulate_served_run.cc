#include "measured/simulate_served_run.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "experiment/build_cluster.h"
#include "proto/catalog/serving_software.h"
#include "proto/load_experiment.h"
#include "serving/passes/pool_text.h"
#include "serving/serving_metrics.h"
#include "sim/base/quantity_text.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

// Any pass of the plan will do: batches come from the engine.
Experiment load(const ServedPlan& plan) {
  const ExperimentSource source{.model = plan.model,
                                .cluster = plan.cluster,
                                .chip = plan.chip,
                                .library = plan.library,
                                .overrides = plan.overrides};
  const std::string_view ranks = value_of_plan(plan.keys, "dp");
  const std::string pass =
      fmt::format("inference=decode,context=2,batch={},allow_idle_chips=true{}{}",
                  ranks.empty() ? "1" : ranks, plan.keys.empty() ? "" : ",", plan.keys);
  Experiment experiment = load_experiment(with_keys(source, pass));
  if (const auto software = find_serving_software(plan.software)) {
    prefer_kernels_of(*software, experiment.cluster.chip.serving);
  }
  return experiment;
}

}  // namespace

PlanTimes::PlanTimes(const ServedPlan& plan)
    : experiment_(load(plan)),
      times_(experiment_, cluster_for_steps(experiment_), {}),
      cost_(times_, experiment_.plan.mesh.dp) {}

void PlanTimes::complete(EngineOptions& engine) {
  constexpr double kNearlyAll = 0.97;
  engine = of_ranks(engine, experiment_.plan.mesh.dp);
  const Cluster& cluster = times_.cluster();
  const std::pair key(engine.batching.budget, engine.memory.picture_tokens);
  auto known = passes_.find(key);
  if (known == passes_.end()) {
    known = passes_.emplace(key, largest_pass(experiment_, cluster, engine)).first;
  }
  EngineOptions given = engine;
  KvRoom room = fit_cache(known->second, experiment_, cluster, engine);
  if (room.blocks <= 0) {
    given.cache.kv_fraction = kNearlyAll;
    room = fit_cache(known->second, experiment_, cluster, engine = given);
  }
  if (room.blocks > 0 && engine.batching.sequences > 0) return;
  throw ConfigError({{"memory", fmt::format("{} of weights and buffers leave no room for a cache",
                                            to_text(room.others))}});
}

ServedFigures simulate_served_run(const ServedRun& run, PlanTimes& replicas, PlanTimes& decode,
                                  const std::function<bool()>& goes_on) {
  const RequestList requests = make_requests(std::array{run.requests});
  ServingOptions options = run.options;
  replicas.complete(options.replicas.options);
  if (options.decode) decode.complete(options.decode->options);
  std::vector<Problem> problems = check(requests, options);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  TimedKvTransport transport({});
  ServingResult result = simulate_serving(
      requests, options,
      {.replicas = replicas.cost(), .decode = &decode.cost(), .transport = &transport},
      [&goes_on](double) {
        if (goes_on && !goes_on()) throw SimulationInterrupted("while requests were served");
      });
  const ServingMetrics metrics = metrics_of(requests, result, {});
  return {.tpot = metrics.tpot.mean,
          .ttft = metrics.ttft.mean,
          .output_tokens_per_s = metrics.per_second(metrics.output_tokens)};
}

}  // namespace stepsim
