// collective_formula() is the time that the literature gives for a collective on an idle network:
// bytes over bandwidth plus trips, from the shape of the group alone. It does not look at the
// messages that stepsim sends. Reports print it beside the simulated time.
//
// docs/collectives.md names the sources. S = bytes (the larger of one member's send and
// receive buffer), W = bandwidth one way, t = latency of a trip. Formulas that sum bytes and trips
// are the alpha-beta model. In a pipelined run (`overlapped`) the time is that of the busiest port
// plus the trips of one way through all rounds. In a stepped run rounds follow each other.
//
// The formula is exact if all members do the same at the same time, or if one port is busy from the
// first byte to the last. Otherwise (lines of unequal length, trees in chunks, members that come
// and go) rounds of different members overlap in ways that no formula describes; it is then a lower
// bound. There is no formula if members differ in their places so much that only their routes tell
// the time (counted_form.h). The forms are in form_table.h.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/collective.h"

namespace stepsim {

// FormulaLevel is a level on which the members differ. Levels are listed innermost first.
struct FormulaLevel {
  std::uint32_t size = 1;
  bool torus_axis = false;
  bool wraps = false;
  bool twists = false;                  // GroupDimension::twists
  Bandwidth bandwidth{};                // one way, of a member's port or its link along the axis
  Duration trip{};                      // latency between neighbours on the level
  std::optional<std::uint32_t> port{};  // the inner level that shares a member's port
  std::uint32_t root = 0;               // coordinate of the root
};

struct CollectiveFormulaInput {
  CollectiveOp op = CollectiveOp::kAllReduce;
  AlgorithmChoice algorithm = AlgorithmChoice::kRing;  // not kAuto
  Bytes bytes{};
  std::span<const FormulaLevel> levels{};
  Duration farthest{};  // latency between members that differ on every level
  // For a ragged all-to-all, by level: the most bytes that a member exchanges, in one direction,
  // with members that differ from it on this level or one outside it. Empty: equal shards.
  std::vector<Bytes> busiest_ports{};
  std::uint32_t rounds = 1;  // rounds of the algorithm, which give the number of chunks
  std::uint32_t lanes = 1;   // lanes of the algorithm, if chunks follow each other in lanes
  bool rail_trees = false;   // kSharp: one tree of switches per rail, not one for all
  bool one_switch = true;    // one level, whose members stand around one switch
  bool node_trees = false;   // each node has one switch that can add
  Bandwidth ports{};         // kPackedTrees: of all links of the member that has the least
  Duration way{};            // kPackedTrees: the longest trip between members linked directly
  bool overlapped = true;    // true: pipelined phases; false: stepped, one after another
};

struct CollectiveFormula {
  double seconds = 0;
  std::string text;   // "2 (n-1)/n S/W + 2 (n-1) t"
  bool exact = true;  // false: a lower bound
};

std::optional<CollectiveFormula> collective_formula(const CollectiveFormulaInput& input);

}  // namespace stepsim
