// The figures that the source documents work out, and what the formula table makes of them.
//
//   for (const WorkedCase& worked : read_worked_cases(csv, formulas_of_cases)) {
//     const CaseOutcome outcome = evaluate_case(worked);
//   }
//
// Both texts are data (catalog/cases): the figures with their sources, tolerances and right values,
// and for each of them the formula and its inputs as `stepsim formula` takes them. The expressions
// in the figures' own column are never evaluated: they are another one's arithmetic.

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
  std::string formula{};   // id of the table
  std::string inputs{};    // "C=197TFLOPS W=820GB/s"
  double expected = 0;     // the right value, in `unit`
  std::string unit{};      // of the document: "ms", "GB", "days", ...
  double tolerance = 0;    // relative, of the document's own rounding
  std::string printed{};   // what the document says; empty: nothing, it is derived
  std::string verdict{};   // "ok", or that the document is wrong or loose
  std::string note{};      // why
};

// Throws std::logic_error for texts that are no such data: they are part of the program.
std::vector<WorkedCase> read_worked_cases(std::string_view csv, std::string_view formulas_of_cases);

struct CaseOutcome {
  double value = 0;       // in the case's unit
  double difference = 0;  // value / expected - 1
  bool agrees = false;    // within the tolerance
};

// Throws std::logic_error where the case names no formula or inputs that it does not have.
CaseOutcome evaluate_case(const WorkedCase& worked);

// What one of `unit` is in base units; 1 for units that are base units or plain numbers.
double base_units(std::string_view unit);

}  // namespace stepsim
