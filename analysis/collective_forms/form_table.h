// The closed forms, by algorithm: one row for each choice but `auto`. An algorithm whose time only
// its routes tell has the row counted_only (counted_form.h).

#pragma once

#include <optional>
#include <span>

#include "analysis/collective_forms/collective_formulas.h"
#include "sim/collectives/collective.h"

namespace stepsim {

// Nothing where the form does not hold for members in such places. REQUIRES: levels are not empty.
using CollectiveForm = std::optional<CollectiveFormula> (*)(const CollectiveFormulaInput& input);

struct FormRow {
  AlgorithmChoice algorithm;
  CollectiveForm form;
};

// In the order of AlgorithmChoice, without kAuto.
std::span<const FormRow> form_table();

}  // namespace stepsim
