#include "cli/run/trace_outputs.h"

#include <cstdint>
#include <vector>

#include "cli/session/progress.h"
#include "sim/base/quantity_text.h"

namespace stepsim {

void write_trace(const TraceRequest& request, const TracedRun& run, TraceNotes notes,
                 Outputs& outputs) {
  Progress progress("trace");
  for (const TraceFile& file : trace_files(request, run.result)) {
    outputs.write(file.path, [&](OutputFile& out) {
      notes.progress = [&](double share) {
        const Bytes written(static_cast<std::int64_t>(out.written()));
        progress.show(share, to_text(written) + " written");
      };
      write_trace(file, request, run, notes, out);
    });
  }
}

std::string trace_if_written(const TraceRequest& request, const SimulationResult& result,
                             const Outputs& outputs) {
  const std::vector<TraceFile> files = trace_files(request, result);
  return files.empty() ? "" : outputs.if_written(files.front().path);
}

}  // namespace stepsim
