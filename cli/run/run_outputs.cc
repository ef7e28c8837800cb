#include "cli/run/run_outputs.h"

#include <unistd.h>

#include <algorithm>
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

void write_outputs(const RunOptions& options, const std::vector<FinishedRun>& runs) {
  const FinishedRun& run = runs.front();
  const bool several = runs.size() > 1;
  std::optional<OutputFile> trace;
  std::optional<OutputFile> json_file;
  if (!options.trace.empty()) {
    trace.emplace(options.trace);
    write_chrome_trace(run.graph, run.cluster, run.result, *trace);
  }
  std::string json;
  if (!options.json.empty()) json = several ? comparison_json(runs) : result_json(run);
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
    std::string text = several ? comparison_report(runs, how) : report(run, how);
    for (const FinishedRun& one : runs) {
      if (one.explanation == nullptr) continue;
      if (several) text += "\n" + std::string(name_of(one.options.fidelity)) + "\n";
      text += explain_report(*one.explanation, how.color);
    }
    print(text);
  }
}

bool fits(const FinishedRun& run) {
  const Bytes capacity = run.cluster.chip.memory_capacity;
  const Bytes on_host = run.cluster.hosts.spec.memory_capacity;
  for (const Bytes host : run.result.host_peaks) {
    if (host > on_host) return false;
  }
  return std::all_of(run.result.memory_peaks.begin(), run.result.memory_peaks.end(),
                     [capacity](const MemoryPeak& peak) { return peak.bytes <= capacity; });
}

}  // namespace stepsim
