#include "books/studies/serving/book_serving.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "books/laboratory/collective_graph.h"
#include "experiment/passes/pass_times.h"
#include "proto/load_experiment.h"
#include "schedules/plan/inference_plan.h"
#include "schedules/plan/parallel_plan.h"
#include "serving/passes/kv_room.h"
#include "serving/passes/simulated_step_cost.h"
#include "topology/small_clusters.h"

namespace stepsim {

Cluster book_v5e(const BookSlice& slice) {
  constexpr double kEndless = 1e18;  // B/s
  constexpr int kWraps = 16;         // chips of an axis
  std::vector<bool> wraps;
  for (const int size : slice.sizes) wraps.push_back(slice.wraps || size >= kWraps);
  Cluster cluster =
      torus_of(slice.sizes, Bandwidth(slice.has_links ? kSliceLink : kEndless),
               slice.has_links ? Duration(std::chrono::microseconds(1)) : Duration{}, wraps);
  cluster.chip.peak = peaks_of_all_types(Throughput(slice.flops));
  cluster.chip.memory_bandwidth = Bandwidth(slice.memory);
  cluster.chip.memory_capacity = whole_bytes(slice.capacity);
  return cluster;
}

Experiment pass_of(const ModelSpec& model, const std::string& plan, const Cluster& cluster) {
  Experiment experiment;
  experiment.name = model.name;
  experiment.model = model;
  experiment.cluster.chip = cluster.chip;
  // load_plan() takes a batch that is not given for one of training.
  std::string keys = "," + plan;
  if (const std::size_t at = keys.find(",batch="); at != std::string::npos) {
    keys.insert(at + 1, "global_");
  }
  experiment.plan = load_plan(keys.substr(1));
  complete_inference(model, experiment.plan);
  for (const Problem& problem : check(experiment.plan, model, cluster.places)) {
    throw std::logic_error(problem.field + ": " + problem.message);
  }
  return experiment;
}

double pass_seconds(const Laboratory& laboratory, const ModelSpec& model, const std::string& plan,
                    const Cluster& cluster) {
  return to_seconds(laboratory.simulate(pass_of(model, plan, cluster), cluster).step_time);
}

std::int64_t caches_that_fit(const ModelSpec& model, const std::string& plan,
                             const Cluster& cluster, std::int64_t tokens, std::int64_t buffered) {
  const Experiment experiment = pass_of(model, plan, cluster);
  EngineOptions engine{.batching = {.budget = buffered}, .cache = {.block = 1, .kv_fraction = 1}};
  const KvRoom room = fit_cache(experiment, cluster, engine);
  return std::max<std::int64_t>(0, room.blocks / tokens);
}

RequestList requests_at_once(std::int64_t count, std::int32_t input, std::int32_t output) {
  RequestList list;
  list.tenants = {{.name = "all"}};
  Request request;
  request.input_tokens = input;
  request.output_tokens = output;
  request.tenant = TenantId(0);
  list.requests.assign(static_cast<std::size_t>(count), request);
  return list;
}

RequestList in_a_loop(RequestList list, std::int64_t concurrency) {
  list.tenants.front().loop = ClosedLoop{.concurrency = concurrency};
  return list;
}

EngineOptions book_engine(std::int64_t sequences, std::int64_t prompt) {
  EngineOptions options;
  options.batching.budget = prompt + sequences;
  options.batching.sequences = sequences;
  options.cache.block = 1;
  options.cache.prefix_cache = false;
  options.batching.chunked_prefill = false;
  return options;
}

ServingResult serve_with_passes(const Laboratory& laboratory, const RequestList& list,
                                const ModelSpec& model, const std::string& plan,
                                const BookSlice& slice, const EngineOptions& engine) {
  if (laboratory.fidelity == Fidelity::kPacket) {
    throw StudySkipped("steps of served requests are simulated on flows");
  }
  Cluster cluster = book_v5e(slice);
  const Experiment pass = pass_of(model, plan, cluster);
  ExperimentOptions simulation;
  simulation.fidelities = {laboratory.fidelity};
  PassTimes times(pass, std::move(cluster), simulation);
  SimulatedStepCost decode(times, pass.plan.mesh.dp);
  std::int64_t prompts = 0;
  for (const Request& request : list.requests) prompts += request.input_tokens;
  ServingOptions options;
  options.replicas.options = book_engine(static_cast<std::int64_t>(list.requests.size()), prompts);
  options.decode = ReplicaGroup{.options = engine};
  LinearStepTime prefill({.base = std::chrono::microseconds(1)});
  TimedKvTransport transport({});
  return simulate_serving(list, options,
                          {.replicas = prefill, .decode = &decode, .transport = &transport});
}

double requests_per_second(const RequestList& list, ServingResult& result) {
  const ServingMetrics metrics = metrics_of(list, result, {});
  return metrics.per_second(metrics.requests);
}

}  // namespace stepsim
