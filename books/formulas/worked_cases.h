// The figures that the source documents work out, checked with the formula table.
//
//   for (const WorkedCase& worked : read_worked_cases(csv, formulas_of_cases)) {
//     const CaseOutcome outcome = evaluate_case(worked);
//   }
//
// Both texts are data (catalog/cases). The first has the figures with their sources, tolerances and
// right values. The second has the formula and the inputs of each, as `stepsim formula` takes them.
// The expressions in the first text are the documents' own arithmetic and are not evaluated.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

struct WorkedCase {
  std::string id{};        // "A01"
  std::string source{};    // document
  std::string quantity{};  // "v5e bf16 critical intensity"
  std::string formula{};   // its id
  std::string inputs{};    // "C=197TFLOPS W=820GB/s"
  double expected = 0;     // the right value, in `unit`
  std::string unit{};      // the document's: "ms", "GB", "days", ...
  double tolerance = 0;    // relative; covers the rounding of the document
  std::string printed{};   // the document's figure; empty: the figure is derived
  std::string verdict{};   // "ok", "derived", or how the document is wrong
  std::string note{};      // why
};

// Throws std::logic_error if the texts are malformed: they are part of the program.
std::vector<WorkedCase> read_worked_cases(std::string_view csv, std::string_view formulas_of_cases);

struct CaseOutcome {
  double value = 0;       // in the case's unit
  double difference = 0;  // value / expected - 1
  bool agrees = false;    // within the tolerance
};

// Throws std::logic_error if there is no such formula, or it has no such inputs.
CaseOutcome evaluate_case(const WorkedCase& worked);

// The size of `unit` in base units; 1 for base units and plain numbers.
double base_units(std::string_view unit);

}  // namespace stepsim
