// The lanes of a rank's communication in a trace: collectives, messages and copies, each as a slice
// of waiting for its peers and one of moving data (traces/run_trace.h).

#pragma once

#include "traces/collective_facts.h"
#include "traces/compute_lane.h"
#include "traces/trace_sink.h"

namespace stepsim {

void write_communication(const TracedRank& rank, CollectiveFacts& facts, TraceSink& sink);

}  // namespace stepsim
