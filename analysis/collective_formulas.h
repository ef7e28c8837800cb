// collective_formula() is what the books say a collective takes on an idle network: bytes over
// bandwidth plus trips, from the shape of the group alone. It knows nothing of how stepsim runs
// the algorithm, and is printed beside what was simulated.
//
// Sources by id: docs/collectives.md. S = bytes (the larger of one member's send and receive
// buffer), W = bandwidth one way, t = latency of a trip. Formulas that sum bytes and trips are the
// alpha-beta model; there is none where it says nothing useful (an algorithm made for switches on a
// torus, a tree whose chunks overlap unevenly).

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sim/base/units.h"
#include "sim/collectives/collective.h"

namespace stepsim {

// A level on which the members differ, innermost first.
struct FormulaLevel {
  std::uint32_t size = 1;
  bool torus_axis = false;
  bool wraps = false;
  Bandwidth bandwidth{};  // one way, of a member's share: its port, its link along the axis
  Duration trip{};        // between neighbours on the level
};

struct CollectiveFormulaInput {
  CollectiveOp op = CollectiveOp::kAllReduce;
  AlgorithmChoice algorithm = AlgorithmChoice::kRing;  // not kAuto
  Bytes bytes{};
  std::span<const FormulaLevel> levels{};
  Duration farthest{};  // a trip between members that differ on every level
  // Ragged all-to-all: the most that a member sends to others, or receives from them.
  std::optional<Bytes> busiest_port{};
  std::uint32_t rounds = 1;  // of the algorithm: tells chunks
  std::uint32_t lanes = 1;   // the same, where chunks follow each other in lanes
  bool rail_trees = false;   // kSharp: a tree of switches a rail, not one for all
  bool overlapped = true;    // phases at once (pipelined), or one after another (stepped)
};

struct CollectiveFormula {
  double seconds = 0;
  std::string text;  // "2 (n-1)/n S/W + 2 (n-1) t"
};

std::optional<CollectiveFormula> collective_formula(const CollectiveFormulaInput& input);

// 2 (n-1)/n for all-reduce; (n-1)/n for gather, scatter, all-gather, reduce-scatter, all-to-all; 1
// otherwise (nccl-tests, doc/PERFORMANCE.md). Bus bandwidth = this x bytes / time.
double bus_factor(CollectiveOp op, std::uint32_t members);

}  // namespace stepsim
