// The closed forms by algorithm. An algorithm whose time depends on routes, or of which no form is
// published, has no row: its time is counted (counted_form.h).

#pragma once

#include <optional>
#include <span>

#include "books/collective_forms/collective_formulas.h"
#include "sim/collectives/collective.h"

namespace stepsim {

// Returns nullopt if the form does not hold for members in such places. REQUIRES: levels is not
// empty.
using CollectiveForm = std::optional<CollectiveFormula> (*)(const CollectiveFormulaInput& input);

struct FormRow {
  AlgorithmChoice algorithm;
  CollectiveForm form;
};

std::span<const FormRow> form_table();
CollectiveForm form_of(AlgorithmChoice algorithm);  // nullptr: it has none

}  // namespace stepsim
