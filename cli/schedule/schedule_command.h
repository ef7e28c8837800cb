// `stepsim schedule NAME`: one pipeline schedule by itself, without a cluster: who does what when,
// the bubble, and how many activations are held.
//
// NAME is a name of schedules/pipeline/schedule_name.h or a file (schedule_file.h), whose numbers
// of stages, micro-batches and chunks are its own. It runs through simulate() on links that take
// the send time and have room for everything, with eager sends: every op as soon as its rank is
// free and what it needs is there. Those that it is compared with are replayed (replay.h), which
// gives the same times.
//
// The JSON has `schedule`, `stages`, `microbatches`, `chunks`, `per_rank` (a list a rank, of ops
// as in "F3.0" and "FB5.0/2.1"), `start_s` (same shape; a fused op starts once), `makespan_s`,
// `bubble_s` (makespan - busiest rank's work), `bubble_fraction` (bubble / makespan),
// `bubble_over_ideal` (bubble / busiest rank's work), `span_bubble_s`, `peak_in_flight`
// (micro-batches x chunks, by rank) and `formula` {`bubble_s`, `source`, `holds`, `because`}, null
// where none is published. `holds`: its conditions are met; `because`: those that are not. A
// formula of a kind that counts one rank's span stands beside `span_bubble_s`, the others beside
// `bubble_s`. `optimal` adds `objective_s` (span bubble), `proven`,
// `lower_bound_s` (of any order's) and `origin`: "search", or the published schedule that nothing
// was found to beat. With --compare (schedule_comparison.h) `comparison` lists the rows of the
// table.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// Runs the schedule and writes what was asked for, to a file and to standard output. Throws
// ConfigError with everything that is wrong at once.
void run_schedule_command(const std::vector<std::string>& arguments);

}  // namespace stepsim
