// collective_formula() is the time that the literature gives a collective on an idle network: bytes
// over bandwidth plus trips, from the shape of the group alone. It knows nothing about the messages
// that stepsim sends, and is printed beside the simulated time.
//
// Sources by id: docs/collectives.md. S = bytes (the larger of one member's send and receive
// buffer), W = bandwidth one way, t = latency of a trip. Formulas that sum bytes and trips are the
// alpha-beta model. Pipelined (`overlapped`) the busiest port counts, and the trips of one way
// through all rounds; stepped, rounds follow each other.
//
// It is exact where all members do the same at the same time, or where one port is busy from the
// first byte to the last. Elsewhere (lines of unequal length, trees in chunks, members that come
// and go) rounds of different members run into each other, which no form describes: there it is a
// lower bound. There is none where members differ in their places so much that only their routes
// tell (counted_form.h). The forms are in form_table.h.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/collective.h"

namespace stepsim {

// A level on which the members differ, innermost first.
struct FormulaLevel {
  std::uint32_t size = 1;
  bool torus_axis = false;
  bool wraps = false;
  bool twists = false;                  // GroupDimension::twists
  Bandwidth bandwidth{};                // one way: of a member's port, or its link along the axis
  Duration trip{};                      // between neighbours on the level
  std::optional<std::uint32_t> port{};  // the inner level that uses the same port of a member
  std::uint32_t root = 0;               // coordinate of the root
};

struct CollectiveFormulaInput {
  CollectiveOp op = CollectiveOp::kAllReduce;
  AlgorithmChoice algorithm = AlgorithmChoice::kRing;  // not kAuto
  Bytes bytes{};
  std::span<const FormulaLevel> levels{};
  Duration farthest{};  // a trip between members that differ on every level
  // For a ragged all-to-all, by level: the most bytes that a member sends to members that differ
  // from it on this level or one outside it, or receives from them. Empty: equal shards.
  std::vector<Bytes> busiest_ports{};
  std::uint32_t rounds = 1;  // rounds of the algorithm, which tell the number of chunks
  std::uint32_t lanes = 1;   // lanes of the algorithm, where chunks follow each other in lanes
  bool rail_trees = false;   // kSharp: a tree of switches a rail, not one for all
  bool one_switch = true;    // one level: its members stand around one switch
  bool node_trees = false;   // each node has one switch that can add
  bool overlapped = true;    // phases at once (pipelined), or one after another (stepped)
};

struct CollectiveFormula {
  double seconds = 0;
  std::string text;   // "2 (n-1)/n S/W + 2 (n-1) t"
  bool exact = true;  // else a lower bound
};

std::optional<CollectiveFormula> collective_formula(const CollectiveFormulaInput& input);

// 2 (n-1)/n for all-reduce; (n-1)/n for gather, scatter, all-gather, reduce-scatter, all-to-all; 1
// otherwise (nccl-tests, doc/PERFORMANCE.md). Bus bandwidth = this x bytes / time.
double bus_factor(CollectiveOp op, std::uint32_t members);

}  // namespace stepsim
