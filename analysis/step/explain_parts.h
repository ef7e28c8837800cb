// The parts of explain(). Only analysis/step/explain*.cc include this.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/formulas/formula_table.h"
#include "analysis/step/explain.h"

namespace stepsim {

// The ranks that run one program: how large a part of all, and the timeline of one of them.
struct ExplainedRole {
  std::uint32_t program = 0;
  double share = 0;
  const Timeline* timeline = nullptr;
};
std::vector<ExplainedRole> roles_of(const FinishedRun& run);

// Model FLOPs / (chips x peak), seconds.
double ideal_compute(const FinishedRun& run);

// explain_compute.cc
ExplainedPart explain_compute(const FinishedRun& run, const std::vector<ExplainedRole>& roles);

// explain_traffic.cc: every communicator, and the messages of the pipeline.
std::vector<ExplainedTraffic> explain_traffic(const FinishedRun& run,
                                              const std::vector<ExplainedRole>& roles);

// Bytes/s that a rank of the communicator's first group can take in, and give out, at best. V / W
// is the time of an all-gather of V at this rate.
double group_bandwidth(const FinishedRun& run, const Communicator& communicator);
const Communicator* find_communicator(const OpGraph& graph, Axis axis);  // the largest groups

// explain_limits.cc
std::vector<ExplainedThreshold> explain_limits(const FinishedRun& run);
// Tokens a chip that hide the rotation of keys and values (E23); 0 where nothing goes round.
double rotation_limit(const FinishedRun& run);

// explain_memory.cc
std::vector<ExplainedPart> explain_memory(const FinishedRun& run);

// Bubble over work of the published form of the plan's schedule, and its text; ratio 0 without one.
struct PublishedBubble {
  double ratio = 0;
  std::string formula;  // "G1"
  std::string text;
};
PublishedBubble published_bubble(const FinishedRun& run);  // explain_bubble.cc
ExplainedPart explain_bubble(const FinishedRun& run, double predicted_work);

// The value of the formula with that id. REQUIRES: there is one, and the values are all it takes.
double value_of(std::string_view formula_id, const FormulaValues& values);

// Leaves out what is nothing beside `scale`.
void add_cause(std::vector<ExplainedCause>& causes, std::string text, double amount, double scale);

}  // namespace stepsim
