#include "experiment/step/published_comparison.h"

namespace stepsim {
namespace {

double flops_per_chip(const Experiment& experiment, const StepMetrics& metrics,
                      AttentionFlops convention) {
  const BatchShape& batch = experiment.plan.batch;
  const double flops = model_flops(experiment.model, batch.global_batch, batch.sequence, convention,
                                   batch.document_length);
  return flops / to_seconds(metrics.step_time) / static_cast<double>(metrics.chips);
}

double simulated_value(const PublishedFigure& figure, const Experiment& experiment,
                       const SimulationResult& result, const StepMetrics& metrics) {
  switch (figure.metric) {
    case PublishedMetric::kStepTime:
      return to_seconds(metrics.step_time);
    case PublishedMetric::kTokensPerSecond:
      return metrics.tokens_per_s;
    case PublishedMetric::kFlopsPerChip:
      return flops_per_chip(experiment, metrics, figure.attention);
    case PublishedMetric::kModelFlopsUtilization:
      return flops_per_chip(experiment, metrics, figure.attention) / metrics.peak_per_chip.value();
    case PublishedMetric::kHardwareFlopsUtilization:
      return metrics.hardware_flops_utilization;
    case PublishedMetric::kPeakMemory:
      return static_cast<double>(result.memory_peaks[result.peak_rank.index()].bytes.value());
    case PublishedMetric::kTimePerToken:
    case PublishedMetric::kTimeToFirstToken:
    case PublishedMetric::kOutputTokensPerChip:
      break;  // left out by compare_with_published()
  }
  return 0;
}

}  // namespace

bool PublishedComparison::as_expected() const {
  return ratio() >= figure.low && ratio() <= figure.high;
}

std::vector<PublishedComparison> compare_with_published(const Publication& publication,
                                                        const Experiment& experiment,
                                                        const SimulationResult& result,
                                                        const StepMetrics& metrics) {
  std::vector<PublishedComparison> comparisons;
  for (const PublishedFigure& figure : publication.figures) {
    if (is_of_serving(figure.metric)) continue;
    comparisons.push_back(
        {.figure = figure, .simulated = simulated_value(figure, experiment, result, metrics)});
  }
  return comparisons;
}

}  // namespace stepsim
