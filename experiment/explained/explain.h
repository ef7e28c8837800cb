// explain() puts the closed forms of the books beside each part of a simulated step. It says which
// of their assumptions this run breaks and what each costs.
//
//   const Explanation explanation = explain(run);   // timelines of one rank of each role recorded
//   explanation.step.predicted, .simulated          // seconds
//   explanation.parts[0].causes                     // why they differ; adds up to the difference
//
// The parts are those of the breakdown, so that both columns add up to a step:
//
//   compute       model FLOPs / (chips x peak) [D6 and attention]; of a pass that generates,
//   weights
//                 and cache over the bandwidth of the memory [I1]
//   exposed ...   V / W of what the axis sends; of data parallelism what a perfectly overlapped
//                 backward (FSDP: whole step) would not hide [E1, E4, E6]
//   bubble        (P - 1)/m of the predicted work, or the published form of the schedule [G1, G2]
//   idle          nothing: ranks are alike
//
// V / W is all bytes of an array divided by the full bandwidth of its group: both directions of all
// torus axes, or the slowest of its switched levels with the bytes that the inner levels leave.
// Causes lead from there to the measured time: (n-1)/n, lines that do not wrap, trips, other
// traffic on the same links.
//
// Compute, exposed parts and bubble are means over all ranks. Collectives are timed on the recorded
// rank of each role and weighted by the number of ranks in the role. Complexity: linear in the
// recorded ops.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiment/finished_run.h"

namespace stepsim {

// ExplainedCause is one reason why simulated and predicted values differ.
struct ExplainedCause {
  std::string text;
  double amount = 0;  // in the unit of its part; positive: the simulation is larger
};

struct ExplainedPart {
  std::string name;     // for example "exposed tp"
  std::string formula;  // ids in the formula table, "E6"; empty: none
  std::string text;     // the formula with this run's numbers
  double predicted = 0;
  double simulated = 0;
  std::vector<ExplainedCause> causes;  // their amounts add up to simulated - predicted
};

// ExplainedTraffic sums up all collectives of a communicator in a step, for a mean rank.
struct ExplainedTraffic {
  std::string name;      // the communicator's: "dp gradients"
  std::string axis;      // "dp"
  std::string text;      // "26 all-gathers of 1.07 GB over 8 x 4 ranks: hierarchical"
  double predicted = 0;  // V / W, seconds
  double simulated = 0;  // while its data moved
  double waiting = 0;    // posted but waiting for peers
  std::vector<ExplainedCause> causes;
  bool in_background = false;  // the communicator's
};

// ExplainedThreshold is a limit from the books and the run's position relative to it.
struct ExplainedThreshold {
  std::string formula;
  std::string text;  // "dp: compute-bound above 850 tokens a chip; you have 512"
  double limit = 0;
  double actual = 0;
  bool met = false;
};

struct Explanation {
  ExplainedPart step;                     // the sum of the parts; its causes are their differences
  std::vector<ExplainedPart> parts;       // seconds
  std::vector<ExplainedTraffic> traffic;  // seconds
  std::vector<ExplainedThreshold> limits;
  std::vector<ExplainedPart> memory;  // bytes by category, of the rank that needs most
};

// REQUIRES: run.result has the timeline of at least one rank of each program.
Explanation explain(const FinishedRun& run);

}  // namespace stepsim
