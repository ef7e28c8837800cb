#include "experiment/step/step_report.h"

#include "experiment/step/settings.h"
#include "sim/hardware/group_links.h"

namespace stepsim {

StepReport report_on(const FinishedRun& run, const AskedExperiment& asked, bool explains) {
  const Situation situation = situation_of(run.experiment, chips_per_node(run.cluster.places));
  // No pass of inference is among the measured runs from which intervals come.
  const auto interval = [&](PredictedMetric metric, double predicted) -> std::optional<Interval> {
    if (run.experiment.plan.is_inference()) return std::nullopt;
    return interval_of(asked.intervals, metric, situation, predicted);
  };
  const MemoryPeak& peak = run.result.memory_peaks[run.result.peak_rank.index()];
  return {.run = run,
          .placement = placement_notes(run.graph, run.cluster, run.result),
          .faults = fault_effects(run.experiment, run.cluster, run.graph),
          .explanation = explains ? std::optional(explain(run)) : std::nullopt,
          .settings = settings_of(run.experiment, asked.overrides),
          .experiment_json = asked.json,
          .published =
              compare_with_published(asked.publication, run.experiment, run.result, run.metrics),
          .step_time_s = interval(PredictedMetric::kStepTime, to_seconds(run.result.step_time)),
          .peak_bytes = interval(PredictedMetric::kMemory, static_cast<double>(peak.bytes.value())),
          .energy = energy_of_step(run.experiment, run.cluster, run.graph, run.result)};
}

}  // namespace stepsim
