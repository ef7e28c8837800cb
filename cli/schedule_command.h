// `stepsim schedule NAME`: one pipeline schedule by itself, without a cluster: who does what when,
// the bubble, and how many activations are held.
//
// NAME is a name of schedules/pipeline/schedule_name.h or a file (schedule_file.h), whose numbers
// of stages, micro-batches and chunks are its own. Times come from replay(): every op as soon as
// its rank is free and what it needs is there; a send takes its time and nothing else.
//
// The JSON has `schedule`, `stages`, `microbatches`, `chunks`, `per_rank` (a list a rank, of ops
// as in "F3.0" and "FB5.0/2.1"), `start_s` (same shape; a fused op starts once), `makespan_s`,
// `bubble_s` (makespan - busiest rank's work), `bubble_fraction` (bubble / makespan),
// `span_bubble_s`, `peak_in_flight` (micro-batches x chunks, by rank) and `formula` {`bubble_s`,
// `source`, `holds`}, null where none is published. `holds`: its conditions are met. A formula of a
// kind that counts one rank's span stands beside `span_bubble_s`, the others beside `bubble_s`.
//
// --compare gives every schedule the same work: a rank's forwards, backwards and so on take as long
// in each, however many chunks they are cut into. Its memory is in stages of activations (1/P of
// the model, one micro-batch).

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// Replays the schedule and writes what was asked for, to a file and to standard output. Throws
// ConfigError with everything that is wrong at once.
void run_schedule_command(const std::vector<std::string>& arguments);

// The options as a person reads them, for `stepsim help schedule`.
std::string describe_schedule_options();

}  // namespace stepsim
