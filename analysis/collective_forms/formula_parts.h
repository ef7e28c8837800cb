// Parts of collective_formula(): a group as all forms see it, and the forms by family.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/collective_forms/collective_formulas.h"

namespace stepsim {

struct FormulaParts {
  double members = 1;
  double bytes = 0;      // S
  double bandwidth = 0;  // of the slowest level
  double trip = 0;       // of the longest
  double passes = 1;     // 2: all-reduce
  bool torus = true;     // all levels are
  bool any_torus = false;
};

FormulaParts parts_of(const CollectiveFormulaInput& input);

// "2 (...)" for an all-reduce.
std::string in_passes(const CollectiveFormulaInput& input, const std::string& text);

// torus_formulas.cc: axes of a torus, all links at once (multi_axis.h), or one rotation of them.
CollectiveFormula torus_rings(const CollectiveFormulaInput& input);
// Hop by hop along rotated axes (torus_all_to_all.h).
CollectiveFormula torus_all_to_all(const CollectiveFormulaInput& input);
// Everybody straight to everybody, to the root, or from it, in dimension order.
std::optional<CollectiveFormula> straight_on_torus(const CollectiveFormulaInput& input);

// level_formulas.cc: switched levels, a node innermost.
CollectiveFormula level_by_level(const CollectiveFormulaInput& input);
CollectiveFormula overlapped_levels(const CollectiveFormulaInput& input);
CollectiveFormula rotated_rings(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> node_relay(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> in_network(const CollectiveFormulaInput& input);

// switch_formulas.cc: one row of members around one switch, whose ports are all that counts.
std::optional<CollectiveFormula> on_one_switch(const CollectiveFormulaInput& input);

}  // namespace stepsim
