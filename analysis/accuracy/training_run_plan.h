// The plan of a row of a table of training runs: training_run.h.

#pragma once

#include <cstdint>
#include <vector>

#include "analysis/accuracy/row_reader.h"
#include "proto/catalog/measured_tables.h"
#include "schedules/plan/parallel_plan.h"

namespace stepsim {

// The software of a row: column `software` names it, or its source is listed there. Without either
// one that says nothing.
Software software_of(const RowReader& row, const std::vector<Software>& known);

// The columns go over what the software does. The run has `chips`, a machine has `node` of them.
// REQUIRES: the row's `layers` have been read.
ParallelPlan plan_of_row(RowReader& row, const MeasuredModel& model, const Software& software,
                         std::int64_t chips, std::int64_t node);

}  // namespace stepsim
