#include "analysis/accuracy/simulate_served_run.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "experiment/build_cluster.h"
#include "proto/load_experiment.h"
#include "serving/serving_metrics.h"
#include "sim/base/quantity_text.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

// Returns "4" of the key dp in "tp=2,dp=4".
std::string ranks_of(std::string_view plan) {
  const std::size_t at = plan.find("dp=");
  return at == std::string_view::npos
             ? "1"
             : std::string(plan.substr(at + 3, plan.find(',', at) - at - 3));
}

Experiment load(const ServedPlan& plan) {
  std::vector<std::string> overrides;
  if (plan.experts) overrides.push_back(fmt::format("model.experts.routed={}", *plan.experts));
  const ExperimentSource source{.model = plan.model,
                                .cluster = plan.cluster,
                                .chip = plan.chip,
                                .library = plan.library,
                                .overrides = std::move(overrides)};
  Experiment experiment = load_experiment(
      with_keys(source, fmt::format("inference=decode,context=2,batch={},allow_idle_chips=true,{}",
                                    ranks_of(plan.plan), plan.plan)));
  ChipSpec& chip = experiment.cluster.chip;
  if (const auto software = serving_software(plan.framework)) {
    prefer_kernels_of(*software, chip.serving);
  }
  if (plan.power_limit > 0 && chip.power) {
    chip.power->limit_watts = static_cast<double>(plan.power_limit);
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
  auto known = rooms_.find(engine.batching.budget);
  if (known == rooms_.end()) {
    const KvRoom room =
        kv_room(experiment_, times_.cluster(), engine.batching.budget, 1, engine.cache.kv_fraction);
    known = rooms_.emplace(engine.batching.budget, room).first;
  }
  const KvRoom& room = known->second;
  std::int64_t blocks = room.blocks / engine.cache.block;
  if (room.of_block > Bytes(0) && blocks <= 0) {
    const auto memory = static_cast<double>(times_.cluster().chip.memory_capacity.value());
    const Bytes left = Bytes(std::llround(kNearlyAll * memory)) - room.others;
    blocks = experiment_.plan.mesh.dp * (left.value() / room.of_block.value()) / engine.cache.block;
  }
  if (room.of_block > Bytes(0) && blocks <= 0) {
    throw ConfigError({{"memory", fmt::format("{} of weights and buffers leave no room for a cache",
                                              to_text(room.others))}});
  }
  if (blocks > 0) engine.cache.kv_blocks = blocks;
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
