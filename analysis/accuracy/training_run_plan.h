// Finds the plan of a row of a table of training runs: training_run.h.

#pragma once

#include <cstdint>
#include <vector>

#include "analysis/accuracy/row_reader.h"
#include "proto/catalog/measured_tables.h"
#include "schedules/plan/parallel_plan.h"

namespace stepsim {

// Returns the software of a row: the one named in column `software`, or the one that lists the
// row's source. If there is neither, it returns an entry without any values.
Software software_of(const RowReader& row, const std::vector<Software>& known);

// The columns override what the software does by default. The run has `chips` chips, a machine has
// `node` of them. REQUIRES: the row's `layers` have been read.
ParallelPlan plan_of_row(RowReader& row, const MeasuredModel& model, const Software& software,
                         std::int64_t chips, std::int64_t node);

// Returns whether the row does not say what is recomputed: "", "not stated", "as needed".
bool leaves_recompute_open(const RowReader& row);

}  // namespace stepsim
