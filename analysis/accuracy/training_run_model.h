// Finds the model of a row of a table of training runs: training_run.h.

#pragma once

#include <vector>

#include "analysis/accuracy/row_reader.h"
#include "proto/catalog/measured_tables.h"
#include "workload/model_spec.h"

namespace stepsim {

// Returns the catalog's entry for the model that the row names; an empty entry if there is none.
// Its sizes are those of the entry, or of the catalog's model of that name ("Nemotron_3_Nano" is
// nemotron3-nano-30b-a3b): for rows that give none, and for models whose layers are not alike,
// which columns can't say, if the row's own sizes agree.
MeasuredModel known_model(const RowReader& row, const std::vector<MeasuredModel>& known,
                          const std::vector<ModelSpec>& catalog);

// `software`: has the dropout of models without a gated MLP, and the vocabulary of rows without
// one.
ModelSpec model_of_row(RowReader& row, const MeasuredModel& known, const Software& software);

}  // namespace stepsim
