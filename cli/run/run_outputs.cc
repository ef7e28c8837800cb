#include "cli/run/run_outputs.h"

#include <unistd.h>

#include <optional>
#include <string>

#include "cli/progress.h"
#include "cli/standard_output.h"
#include "traces/chrome_trace.h"
#include "traces/explain_report.h"
#include "traces/fidelity_comparison.h"
#include "traces/output_file.h"
#include "traces/report.h"
#include "traces/result_json.h"

namespace stepsim {

void write_outputs(const RunOptions& options, const std::vector<StepReport>& reports) {
  const FinishedRun& run = reports.front().run;
  const bool several = reports.size() > 1;
  std::optional<OutputFile> trace;
  std::optional<OutputFile> json_file;
  if (!options.trace.empty()) {
    trace.emplace(options.trace);
    write_chrome_trace(run.graph, run.cluster, run.result, *trace);
  }
  std::string json;
  if (!options.json.empty()) {
    json = several ? comparison_json(reports) : result_json(reports.front());
  }
  if (!json.empty() && !options.json_on_stdout()) {
    json_file.emplace(options.json);
    json_file->write(json);
  }
  stop_if_interrupted();
  if (trace) trace->commit();
  if (json_file) json_file->commit();
  if (options.json_on_stdout()) {
    print(json);
  } else {
    const ReportOptions how = {.color = shows_color(STDOUT_FILENO),
                               .trace_path = options.trace,
                               .json_path = options.json};
    std::string text = several ? comparison_report(reports, how) : report(reports.front(), how);
    for (const StepReport& one : reports) {
      if (!one.explanation) continue;
      if (several) text += "\n" + std::string(name_of(one.run.options.fidelity)) + "\n";
      text += explain_report(*one.explanation, how.color);
    }
    print(text);
  }
}

}  // namespace stepsim
