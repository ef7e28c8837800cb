// PerfettoSink writes a trace in Perfetto's own format (.pftrace), for ui.perfetto.dev and its
// trace processor: names are written once, and packets are compressed, so the file is a tenth of
// the size of Chrome's JSON or less. A second thread compresses while the next packets are made.
// The bytes depend only on what is written.
//
// An arrow leads from slice to slice: the instants of its ends are not kept. A list of texts among
// the arguments is one text.

#pragma once

#include <memory>

#include "traces/files/output_file.h"
#include "traces/formats/trace_sink.h"

namespace stepsim {

std::unique_ptr<TraceSink> perfetto_sink(OutputFile& out);

}  // namespace stepsim
