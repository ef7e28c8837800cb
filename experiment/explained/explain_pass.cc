// Compute of a pass that generates tokens: weights and cache read at the full bandwidth (I1), and
// what kernels take beyond that. All causes but the last are sums over the kernels of the graph.
// The last is the remainder that the run measured.

#include <fmt/format.h>

#include "experiment/explained/explain_parts.h"
#include "schedules/plan/inference_plan.h"
#include "sim/base/quantity_text.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

// Seconds of a mean rank.
struct PassTimes {
  double matmuls = 0;
  double attention = 0;
  double others = 0;
  double launches = 0;
};

bool reads_cache(const Kernel& kernel) {
  return kernel.kind == KernelKind::kAttentionDecode || kernel.kind == KernelKind::kLatentDecode ||
         kernel.kind == KernelKind::kAttentionForward;
}

PassTimes times_of(const FinishedRun& run, const std::vector<ExplainedRole>& roles) {
  PassTimes times;
  for (const ExplainedRole& role : roles) {
    for (const Op& op : run.graph.programs[role.program].ops) {
      if (op.kind != OpKind::kCompute) continue;
      for (const Kernel& kernel : run.graph.compute_works[op.work].kernels) {
        const KernelTime time = time_of(kernel, run.cluster.chip);
        double& sum = reads_cache(kernel)                  ? times.attention
                      : kernel.kind == KernelKind::kMatmul ? times.matmuls
                                                           : times.others;
        sum += role.share * to_seconds(time.total - time.overhead);
        times.launches += role.share * to_seconds(time.overhead);
      }
    }
  }
  return times;
}

// Returns the bytes of all copies of the weights, those of blocks once for each micro-batch.
// Replicas share the experts of a group of ep.
double weights_read(const ModelSpec& model, const ParallelPlan& plan) {
  const std::int64_t experts = expert_parameter_count(model);
  const std::int64_t others = parameter_count(model) - experts;
  const std::int64_t tables =
      std::int64_t{model.embedding.tied ? 1 : 2} * model.embedding.vocabulary * model.hidden;
  const std::int64_t times = count_of_microbatches(plan);
  const std::int64_t parameters =
      plan.mesh.dp * (tables + times * (others - tables)) + plan.mesh.edp() * times * experts;
  return static_cast<double>(parameters) * mean_bytes_of(plan.weights());
}

}  // namespace

ExplainedPart explain_generation(const FinishedRun& run, const std::vector<ExplainedRole>& roles) {
  const ModelSpec& model = run.experiment.model;
  const auto requests = static_cast<double>(run.experiment.plan.batch.global_batch);
  const auto chips = static_cast<double>(run.metrics.chips);
  const double cache = static_cast<double>(run.metrics.pass->cache.value());
  const double bandwidth = run.cluster.chip.memory_bandwidth.value();
  const double weights = weights_read(model, run.experiment.plan);
  const double predicted =
      value_of("I1", {{"B", requests},
                      {"kv", cache / requests},
                      {"V", weights},
                      {"P", static_cast<double>(active_parameter_count(model))},
                      {"Nc", chips},
                      {"W", bandwidth},
                      {"C", run.metrics.peak_per_chip.value()}});
  ExplainedPart part{
      .name = "compute",
      .formula = "I1",
      .text =
          fmt::format("{:.4g} B of cache and {:.4g} B of weights / ({} x {}), or arithmetic", cache,
                      weights, run.metrics.chips, to_text(run.cluster.chip.memory_bandwidth)),
      .predicted = predicted,
      .simulated = to_seconds(run.result.breakdown.compute),
      .causes = {}};
  const PassTimes times = times_of(run, roles);
  const double of_cache = cache / (chips * bandwidth);
  const auto add = [&](const char* text, double amount) {
    add_cause(part.causes, text, amount, part.simulated);
  };
  add("matmuls slower than that (bandwidth that small ones reach; experts without tokens)",
      times.matmuls - (predicted - of_cache));
  add("attention slower than that (blocks that fill the chip badly; heads on several chips)",
      times.attention - of_cache);
  add("kernels beside them (norms, rotation, activations, sampling)", times.others);
  add("launches", times.launches);
  add("slowed by concurrent communication and by stragglers",
      part.simulated - times.matmuls - times.attention - times.others - times.launches);
  return part;
}

}  // namespace stepsim
