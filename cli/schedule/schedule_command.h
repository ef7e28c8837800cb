// `stepsim schedule NAME`: runs one pipeline schedule alone, without a cluster. It shows when each
// rank runs which op, the bubble, and the number of activations held.
//
// NAME is a name of schedules/pipeline/schedule_name.h, or a file (schedule_file.h) with its own
// numbers of stages, micro-batches and chunks. The schedule runs through simulate() on links that
// take the send time and have unlimited bandwidth. Sends are eager. An op starts as soon as its
// rank is free and its inputs are there. Schedules that it is compared with are replayed
// (replay.h), which gives the same times.
//
// Fields of the JSON:
//   schedule, stages, microbatches, chunks
//   per_rank           for each rank the list of its ops: "F3.0", "FB5.0/2.1"
//   start_s            the starts, in the same shape; a fused op starts once
//   makespan_s
//   bubble_s           makespan - work of the busiest rank
//   bubble_fraction    bubble / makespan
//   bubble_over_ideal  bubble / work of the busiest rank
//   span_bubble_s
//   peak_in_flight     micro-batches x chunks, by rank
//   formula            {bubble_s, source, holds, because}; null if none is published. `holds`: its
//                      conditions are met. `because`: the conditions that are not. Formulas that
//                      count the span of one rank are compared with span_bubble_s, others with
//                      bubble_s.
//   objective_s, proven, lower_bound_s, origin
//                      `optimal` only. The objective is the span bubble; no order's is below the
//                      lower bound. `origin` is "search", or the published schedule that the search
//                      did not beat.
//   comparison         with --compare: the rows of the table (schedule_comparison.h)

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kScheduleSubcommand;

}  // namespace stepsim
