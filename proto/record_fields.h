// Converts between records (experiment_record.h) and the messages of files.

#pragma once

#include "experiment/experiment.h"
#include "proto/experiment.pb.h"
#include "proto/experiment_record.h"
#include "proto/messages/message_file.h"
#include "proto/messages/problem_list.h"

namespace stepsim {

// Reads the sections `simulation` and `seed`.
ExperimentOptions to_simulation(const file::Experiment& message, ProblemList& problems);

// If the text is the result of a run, replaces it by the experiment that it contains.
void take_out_of_result(SourceText& source);

// `message` is fully resolved. `experiment` was made from it.
ExperimentRecord record_of(const file::Experiment& message, const Experiment& experiment);

}  // namespace stepsim
