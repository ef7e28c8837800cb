// The parts of explain(). Only experiment/step/explain*.cc include this header.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "books/formulas/formula_table.h"
#include "experiment/explained/explain.h"

namespace stepsim {

// ExplainedRole describes the ranks that run one program: their share of all ranks, and the
// timeline of one of them.
struct ExplainedRole {
  std::uint32_t program = 0;
  double share = 0;
  const Timeline* timeline = nullptr;
};
std::vector<ExplainedRole> roles_of(const FinishedRun& run);

// Returns model FLOPs / (chips x peak) in seconds.
double ideal_compute(const FinishedRun& run);

// explain_compute.cc
ExplainedPart explain_compute(const FinishedRun& run, const std::vector<ExplainedRole>& roles);

// explain_pass.cc: compute of a pass of inference that generates.
ExplainedPart explain_generation(const FinishedRun& run, const std::vector<ExplainedRole>& roles);

// explain_traffic.cc: every communicator, and the messages of the pipeline.
std::vector<ExplainedTraffic> explain_traffic(const FinishedRun& run,
                                              const std::vector<ExplainedRole>& roles);

// Returns the best rate, in bytes/s, at which a rank of the communicator's first group can receive
// and send. V / W is the time of an all-gather of V at this rate.
double group_bandwidth(const FinishedRun& run, const Communicator& communicator);
const Communicator* find_communicator(const OpGraph& graph, Axis axis);  // the largest groups

// explain_limits.cc
std::vector<ExplainedThreshold> explain_limits(const FinishedRun& run);
// Returns the tokens per chip that hide the rotation of keys and values (E23); 0 if nothing
// rotates.
double rotation_limit(const FinishedRun& run);

// explain_memory.cc
std::vector<ExplainedPart> explain_memory(const FinishedRun& run);

// PublishedBubble is the published bubble over work of the plan's schedule, and its text. The ratio
// is 0 if none is published.
struct PublishedBubble {
  double ratio = 0;
  std::string formula;  // "G1"
  std::string text;
};
PublishedBubble published_bubble(const FinishedRun& run);  // explain_bubble.cc
ExplainedPart explain_bubble(const FinishedRun& run, double predicted_work);
// Of a pass whose experts are on chips of their own.
ExplainedPart explain_turns(const FinishedRun& run);

// Returns the value of a formula. REQUIRES: the id exists, and `values` has exactly its inputs.
double value_of(std::string_view formula_id, const FormulaValues& values);

// Adds a cause unless it is negligible relative to `scale`.
void add_cause(std::vector<ExplainedCause>& causes, std::string text, double amount, double scale);

}  // namespace stepsim
