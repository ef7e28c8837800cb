// The closed forms by algorithm: one row for each choice except `auto`. The row of an algorithm
// whose time depends on routes is counted_only (counted_form.h).

#pragma once

#include <optional>
#include <span>

#include "analysis/collective_forms/collective_formulas.h"
#include "sim/collectives/collective.h"

namespace stepsim {

// Returns nullopt if the form does not hold for members in such places. REQUIRES: levels is not
// empty.
using CollectiveForm = std::optional<CollectiveFormula> (*)(const CollectiveFormulaInput& input);

struct FormRow {
  AlgorithmChoice algorithm;
  CollectiveForm form;
};

// Rows in the order of AlgorithmChoice, without kAuto.
std::span<const FormRow> form_table();

}  // namespace stepsim
