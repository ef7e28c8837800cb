// write_serving_trace() writes a run of `stepsim serve` as Chrome trace JSON, for ui.perfetto.dev.
//
//   process   a replica; the last one holds the requests
//   slice     a step, named by its batch: "prefill 3 x 512 + decode 61"
//   counter   running and waiting requests, KV blocks held, of each replica
//   async     a request from arrival to last token, and inside it the parts of its time
//
// Times start at 0 and are cut to whole nanoseconds, so slices that touch in the simulation touch
// in the trace. REQUIRES: the run recorded its steps (ServingOptions::records_steps).

#pragma once

#include "serving/serving_result.h"
#include "traces/files/output_file.h"

namespace stepsim {

// Does not commit `out`. Throws OutputError if `out` cannot be written.
void write_serving_trace(const ServingResult& result, OutputFile& out);

}  // namespace stepsim
