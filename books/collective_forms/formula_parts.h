// The parts of collective_formula(): a group as all forms see it, and the forms themselves.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "books/collective_forms/collective_formulas.h"

namespace stepsim {

struct FormulaParts {
  double members = 1;
  double bytes = 0;      // S
  double bandwidth = 0;  // the lowest of all levels
  double trip = 0;       // the longest of all levels
  double passes = 1;     // 2 for an all-reduce, otherwise 1
  bool torus = true;     // all levels are torus axes
  bool any_torus = false;
};

FormulaParts parts_of(const CollectiveFormulaInput& input);

// RingHop is a kind of messages of a ring, all of which travel in the same round.
struct RingHop {
  double seconds = 0;  // without the trip
  double trip = 0;
};

// Returns whether all kinds take equally long. Only then do the members of a stepped ring keep in
// step; otherwise those with short hops run ahead.
bool are_alike(std::span<const RingHop> kinds);

// Returns "2 (...)" for an all-reduce.
std::string in_passes(const CollectiveFormulaInput& input, const std::string& text);

// The forms below are those of form_table.cc. Each returns nullopt if it does not hold.

// torus_formulas.cc: rings on the axes of a torus, with all links at once (multi_axis.h) or one
// rotation of the axes.
std::optional<CollectiveFormula> torus_rings(const CollectiveFormulaInput& input);
// Hop by hop along rotated axes (torus_all_to_all.h).
std::optional<CollectiveFormula> torus_all_to_all(const CollectiveFormulaInput& input);
// Every member sends straight to every other one, to the root, or from it, in dimension order. A
// part of direct().
std::optional<CollectiveFormula> straight_on_torus(const CollectiveFormulaInput& input);
// A tree from each port of the root (root_trees.h).
std::optional<CollectiveFormula> root_trees(const CollectiveFormulaInput& input);

// level_formulas.cc: switched levels, a node innermost.
std::optional<CollectiveFormula> hierarchical(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> overlapped_levels(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> rotated_rings(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> node_relay(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> in_network(const CollectiveFormulaInput& input);

// switch_formulas.cc: a row of members around one switch, whose ports alone determine the time.
std::optional<CollectiveFormula> flat_rings(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> direct(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> pairwise(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> chain(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> binomial_tree(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> bruck(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> halving_doubling(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> double_binary_tree(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> reduce_broadcast(const CollectiveFormulaInput& input);
// Members that are linked directly (packed_trees.h): the ports of the one that has the least.
std::optional<CollectiveFormula> packed_trees(const CollectiveFormulaInput& input);
std::optional<CollectiveFormula> dissemination(const CollectiveFormulaInput& input);

}  // namespace stepsim
