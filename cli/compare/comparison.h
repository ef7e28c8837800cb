// Compares results of `stepsim run`: what was different in the experiments, every line of the
// report, and the parts of the step that make the difference. The parts add up to it to the
// picosecond, because the breakdown adds up to the step.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/messages/json_value.h"

namespace stepsim {

struct ComparedRun {
  std::string name;    // as it was asked for
  std::string source;  // "result", or "simulated"
  Json result;         // of `stepsim run --json`
};

// A field of the experiments that is not the same in all. Values are texts; nothing: the experiment
// has no such field.
struct InputDifference {
  std::string path;                                // "plan.tp"
  std::vector<std::optional<std::string>> values;  // by run
};

enum class LineUnit : std::uint8_t { kSeconds, kBytes, kNumber, kShare };

// A line of the report. A time is in picoseconds here. Nothing: that run has no such line.
struct ComparedLine {
  std::string section;  // "step", "breakdown", "memory", "traffic", "critical path"
  std::string name;
  LineUnit unit = LineUnit::kNumber;
  std::vector<std::optional<double>> values;  // by run
};

struct ExplainedDifference {
  std::string part;  // of the breakdown
  std::int64_t picoseconds = 0;
};

// What is behind a difference that the mean of all ranks spreads: a link that one of the runs has
// slow or down, a rank that computes longer than its stage.
struct NamedCause {
  std::string text;  // a sentence
  std::string link;  // that is waited for; empty: none
  std::vector<std::int64_t> ranks;
  std::int64_t picoseconds = 0;  // of the traffic or the rank alone, a step; not a part of the sum
};

// How a run differs from the first.
struct RunDifference {
  std::int64_t step_ps = 0;
  std::vector<ExplainedDifference> parts;  // largest first; add up to step_ps
  std::vector<NamedCause> causes{};        // that the two runs don't share
};

struct RunComparison {
  std::vector<InputDifference> inputs;
  std::vector<ComparedLine> lines;
  std::vector<RunDifference> differences;  // of all runs but the first
};

// Returns why a value is no result of `stepsim run`; "" if it is one.
std::string trouble_with_result(const Json& result);

// REQUIRES: at least two runs, each a result.
RunComparison compare(const std::vector<ComparedRun>& runs);

}  // namespace stepsim
