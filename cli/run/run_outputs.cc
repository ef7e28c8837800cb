#include "cli/run/run_outputs.h"

#include <unistd.h>

#include <optional>
#include <string>

#include "cli/outputs.h"
#include "cli/run/trace_outputs.h"
#include "cli/run/what_if_text.h"
#include "cli/session/progress.h"
#include "cli/version.h"
#include "schedules/plan/keys/key_groups.h"
#include "sim/base/quantity_text.h"
#include "traces/files/output_file.h"
#include "traces/results/explain_report.h"
#include "traces/results/fidelity_comparison.h"
#include "traces/results/report.h"

namespace stepsim {

namespace {

std::string text_of(const std::vector<StepReport>& reports, const ReportOptions& how) {
  const bool several = reports.size() > 1;
  std::string text = several ? comparison_report(reports, how) : report(reports.front(), how);
  for (const StepReport& one : reports) {
    if (!one.explanation) continue;
    if (several) text += "\n" + std::string(name_of(one.run.options.fidelity)) + "\n";
    text += explain_report(*one.explanation, how.color);
  }
  return text;
}

std::string text_of(const WhatIfFindings& what_if, bool color) {
  std::string text;
  if (what_if.sensitivity) text += sensitivity_report(*what_if.sensitivity, color);
  if (what_if.breakeven) text += breakeven_report(*what_if.breakeven, color);
  return text;
}

// The keys of a group that differ from the defaults: "tp=8,dp=16".
std::string notes_of(KeyGroup group, const ParallelPlan& plan) {
  std::string text;
  for (const FieldValue& value : fields_of(group).changed(plan)) {
    text += (text.empty() ? "" : ",") + value.path + "=" + value.text;
  }
  return text;
}

TraceNotes notes_of(const FinishedRun& run) {
  const ParallelPlan& plan = run.experiment.plan;
  return {.metadata = {{"stepsim", std::string(version())},
                       {"experiment", run.experiment.name},
                       {"model", run.experiment.model.name},
                       {"cluster", run.experiment.cluster.name},
                       {"plan", notes_of(KeyGroup::kPlan, plan)},
                       {"software", notes_of(KeyGroup::kSoftware, plan)},
                       {"pass", notes_of(KeyGroup::kPass, plan)},
                       {"fidelity", std::string(name_of(run.options.fidelity))},
                       {"step_time_s", exact_seconds(run.result.step_time)}},
          .tokens_per_microbatch = plan.batch.microbatch_size * plan.batch.sequence,
          .energy = energy_of_kernels(run.experiment, run.cluster, run.graph)};
}

}  // namespace

void write_outputs(const RunOptions& options, const std::vector<StepReport>& reports,
                   const WhatIfFindings& what_if, Outputs& outputs) {
  const FinishedRun& run = reports.front().run;
  write_trace(options.trace, {run.graph, run.cluster, run.result}, notes_of(run), outputs);
  std::string json;
  if (!options.json.empty()) {
    json = reports.size() > 1 ? runs_json(reports) : run_json(reports.front(), what_if);
  }
  outputs.write(options.json, json);
  if (what_if.sensitivity) {
    const Tornado tornado = tornado_of(*what_if.sensitivity, run.experiment.name);
    outputs.write(options.sensitivity_plot, tornado_svg(tornado));
  }
  outputs.commit();
  outputs.print(
      options.json_on_stdout()
          ? json
          : text_of(reports, {.color = shows_color(STDOUT_FILENO),
                              .trace_path = trace_if_written(options.trace, run.result, outputs),
                              .json_path = outputs.if_written(options.json),
                              .html_path = outputs.if_written(options.html)}) +
                text_of(what_if, shows_color(STDOUT_FILENO)));
}

}  // namespace stepsim
