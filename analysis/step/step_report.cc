#include "analysis/step/step_report.h"

#include "analysis/step/settings.h"

namespace stepsim {

StepReport report_on(const FinishedRun& run, const AskedExperiment& asked, bool explains) {
  return {.run = run,
          .placement = placement_notes(run.graph, run.cluster, run.result),
          .explanation = explains ? std::optional(explain(run)) : std::nullopt,
          .settings = settings_of(run.experiment, asked.overrides),
          .experiment_json = asked.json,
          .published =
              compare_with_published(asked.publication, run.experiment, run.result, run.metrics)};
}

}  // namespace stepsim
