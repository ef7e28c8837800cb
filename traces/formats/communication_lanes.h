// The lanes of a rank's communication in a trace: collectives, messages and copies, each as a slice
// of waiting for its peers and one of moving data (traces/formats/run_trace.h).

#pragma once

#include "traces/formats/collective_facts.h"
#include "traces/formats/compute_lane.h"
#include "traces/formats/trace_sink.h"

namespace stepsim {

void write_communication(const TracedRank& rank, CollectiveFacts& facts, TraceSink& sink);

}  // namespace stepsim
