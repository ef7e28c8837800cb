#include "experiment/step_metrics.h"

#include <algorithm>
#include <numeric>

#include "schedules/plan/expert_places.h"
#include "schedules/plan/inference_plan.h"
#include "workload/inference.h"
#include "workload/model_counts.h"
#include "workload/parts/adapters.h"

namespace stepsim {

std::string_view name_of(AttentionFlops convention) {
  return convention == AttentionFlops::kCausal ? "causal" : "full";
}

namespace {

std::optional<ExpertBalance> expert_balance(const Experiment& experiment) {
  const ModelSpec& model = experiment.model;
  const Ranks& mesh = experiment.plan.mesh;
  const BatchShape& batch = experiment.plan.batch;
  const ExpertSpec& experts = model.experts;
  if (experts.load.empty() && experts.capacity_factor == 0) return std::nullopt;
  // How tokens travel does not change where they go.
  ExpertRouting routing = expert_routing(model, mesh, {}, mesh.ep);
  routing.tokens = batch.microbatch_size * batch.sequence /
                   (mesh.cp * (experiment.plan.divides_tokens() ? mesh.tp : 1));
  const ExpertTraffic traffic = route_tokens(routing);
  const auto of_rank = static_cast<std::ptrdiff_t>(experts.routed / mesh.ep);
  double busiest = 0;
  double all = 0;
  for (auto first = traffic.tokens_of_expert.begin(); first != traffic.tokens_of_expert.end();
       first += of_rank) {
    const double sum = std::accumulate(first, first + of_rank, 0.0);
    busiest = std::max(busiest, sum);
    all += sum;
  }
  double layers = static_cast<double>(model.prediction.modules);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    layers += kind_of(model, layer).mlp == MlpKind::kExperts ? 1 : 0;
  }
  const std::int64_t groups = mesh.stage_ranks() / mesh.ep;
  return ExpertBalance{.busiest_over_mean = busiest * static_cast<double>(mesh.ep) / all,
                       .dropped_copies = traffic.dropped * static_cast<double>(groups) * layers *
                                         static_cast<double>(experiment.plan.microbatches()),
                       .dropped_fraction = traffic.dropped / (all + traffic.dropped)};
}

// With a frozen model, the weight gradients of its matmuls are not computed; those of the adapters
// are, and what stands beside them.
double flops_not_trained(const Experiment& experiment) {
  if (!experiment.plan.training.lora_rank) return 0;
  const BatchShape& batch = experiment.plan.batch;
  const auto tokens = static_cast<double>(batch.global_batch * batch.sequence);
  const auto frozen = static_cast<double>(matmul_parameter_count(experiment.model));
  const auto trained =
      static_cast<double>(adapter_parameter_count(experiment.model, experiment.plan.adapters()));
  return (2 * frozen - 6 * trained) * tokens;
}

PassMetrics measure_pass(const Experiment& experiment, const SimulationResult& result) {
  const ModelSpec& model = experiment.model;
  const RequestBatch batch = requests_of(experiment.plan);
  PassMetrics metrics{
      .cache_per_token = cache_bytes_per_token(model, batch.cache),
      .cache = experiment.plan.mesh.dp *
               cache_of_layers(model, batch, 1, CacheSplit::kHeads, 0, model.layers)};
  const bool decodes = experiment.plan.pass.inference == Inference::kDecode;
  if (!decodes || model.experts.routed > 0) return metrics;
  const MemoryBytes& held = result.memory_peaks[result.peak_rank.index()].by_category;
  const Bytes read = held[static_cast<std::size_t>(MemoryCategory::kParameters)] +
                     held[static_cast<std::size_t>(MemoryCategory::kCache)];
  metrics.bandwidth_utilization =
      static_cast<double>(read.value()) /
      (to_seconds(result.step_time) * experiment.cluster.chip.memory_bandwidth.value());
  return metrics;
}

}  // namespace

namespace {

// Returns those of the vision part in a step of training: three times the forward where it is
// trained.
double flops_of_pictures(const Experiment& experiment) {
  const BatchShape& batch = experiment.plan.batch;
  if (batch.vision_tokens == 0) return 0;
  const VisionFlops one =
      vision_flops(experiment.model, batch.tokens_of_picture() * experiment.model.vision.merged());
  const VisionTraining trained = experiment.plan.training.vision;
  const double pictures =
      static_cast<double>(batch.global_batch * (batch.vision_tokens / batch.tokens_of_picture()));
  return pictures * (one.encoder * (trained == VisionTraining::kAll ? 3 : 1) +
                     one.projectors * (trained == VisionTraining::kNone ? 1 : 3));
}

}  // namespace

double step_flops(const Experiment& experiment, AttentionFlops convention) {
  if (experiment.plan.is_inference()) {
    return static_cast<double>(experiment.plan.mesh.dp) *
           inference_flops(experiment.model, requests_of(experiment.plan));
  }
  const BatchShape& batch = experiment.plan.batch;
  return model_flops(experiment.model, batch.global_batch, batch.sequence, convention,
                     batch.document_length) +
         flops_of_pictures(experiment) - flops_not_trained(experiment);
}

StepMetrics measure(const Experiment& experiment, const SimulationResult& result,
                    AttentionFlops convention) {
  const BatchShape& batch = experiment.plan.batch;
  StepMetrics metrics;
  metrics.step_time = result.step_time;
  metrics.convention = convention;
  metrics.chips = experiment.plan.mesh.ranks();
  metrics.peak_per_chip = experiment.cluster.chip.peak_of(experiment.plan.precision.type);
  metrics.model_flops = step_flops(experiment, convention);

  const double seconds = to_seconds(result.step_time);
  const auto chips = static_cast<double>(metrics.chips);
  metrics.tokens_per_s = static_cast<double>(batch.global_batch * batch.sequence) / seconds;
  metrics.tokens_per_s_per_chip = metrics.tokens_per_s / chips;
  const double available_flops = seconds * chips * metrics.peak_per_chip.value();
  metrics.model_flops_utilization = metrics.model_flops / available_flops;
  metrics.hardware_flops_utilization = result.flops.value() / available_flops;
  if (experiment.plan.is_inference()) metrics.pass = measure_pass(experiment, result);
  metrics.experts = expert_balance(experiment);
  return metrics;
}

}  // namespace stepsim
