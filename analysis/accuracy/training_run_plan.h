// Finds the plan of a row of a table of training runs: training_run.h.

#pragma once

#include <cstdint>
#include <vector>

#include "analysis/accuracy/row_reader.h"
#include "analysis/accuracy/training_run_recompute.h"
#include "proto/catalog/measured_tables.h"
#include "schedules/plan/parallel_plan.h"
#include "workload/model_spec.h"

namespace stepsim {

// Returns the software of a row: the one named in the columns `software` and `release` ("NeMo",
// "24.07"), or the one that lists the row's source. If there is neither, it returns an entry
// without any values, and says so of a name that it doesn't know.
Software software_of(RowReader& row, const std::vector<Software>& known);

// Returns whether the row says, in any column, that it trains adapters beside a frozen model.
bool trains_adapters(const RowReader& row);

// Returns whether the column zero_stage says nothing: blank, "not stated".
bool leaves_zero_open(std::string_view words);

// The columns override what the software does by default. The run has `chips` chips. Puts into
// `guesses` what may be recomputed if the row leaves it open.
ParallelPlan plan_of_row(RowReader& row, const ModelSpec& model, const Software& software,
                         std::int64_t chips, const Hardware& hardware,
                         std::vector<RecomputeGuess>& guesses);
}  // namespace stepsim
