// Writes the trace of a run where cli/run/trace_options.h says.

#pragma once

#include <string>

#include "cli/outputs.h"
#include "traces/formats/trace_file.h"

namespace stepsim {

// Writes the files that were asked for, and shows how far it is.
void write_trace(const TraceRequest& request, const TracedRun& run, TraceNotes notes,
                 Outputs& outputs);

// Returns the path of the trace, or of its first file, if it has been written, else "".
std::string trace_if_written(const TraceRequest& request, const SimulationResult& result,
                             const Outputs& outputs);

}  // namespace stepsim
