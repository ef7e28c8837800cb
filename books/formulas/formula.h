// Formula is one closed form of the documents that stepsim is measured against. It has the
// expression, its symbols, its source, the conditions under which it holds, and a correction if the
// source prints it wrongly.
//
// A formula is data. stepsim evaluates the expression itself (books/formulas/expression.h), so
// `stepsim formula E7` shows exactly what it computes. To add a formula, add a row to the file of
// its group in catalog/formulas (formula_files.cc reads them). The table test evaluates the example
// of every row and solves it back.
//
// Values are in base units: bytes, seconds, bytes/s, FLOP, FLOP/s. Counts are plain numbers.
// Nothing in this folder simulates; of the simulator it includes sim/base only.
//
// An id is a letter for the group and a number for the row. The main formula of a row has the plain
// id, the others have a name behind it: E8, E8.unoverlapped.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace stepsim {

enum class InputRange : std::uint8_t {
  kPositive,     // any number above 0
  kNotNegative,  // any number from 0 on
  kCount,        // a whole number from 1 on
  kFraction,     // above 0, at most 1
};

// The catalog value that fills an input when chip= or model= is given.
enum class CatalogValue : std::uint8_t {
  kNone,
  kChipBf16Peak,
  kChipMemoryBandwidth,
  kChipMemoryCapacity,
  kChipLinkBandwidth,  // TPUs only: an ICI link, one direction
  kChipAxisBandwidth,  // TPUs only: an ICI axis, both directions
  kModelLayers,
  kModelHidden,
  kModelIntermediate,
  kModelHeads,
  kModelKvHeads,
  kModelHeadWidth,
  kModelVocabulary,
  kModelParameters,
};

struct FormulaInput {
  std::string_view symbol;
  std::string_view unit;  // "B", "s", "B/s", "FLOP", "FLOP/s" are read and written with prefixes
  std::string_view meaning;
  InputRange range = InputRange::kPositive;
  CatalogValue catalog = CatalogValue::kNone;
  std::optional<double> otherwise{};  // value if the input is left out; unset: it must be given

  constexpr FormulaInput or_else(double value) const {
    FormulaInput input = *this;
    input.otherwise = value;
    return input;
  }
  constexpr FormulaInput means(std::string_view text) const {
    FormulaInput input = *this;
    input.meaning = text;
    return input;
  }
};

struct FormulaResult {
  std::string_view symbol;  // differs from those of all inputs
  std::string_view unit;
};

// An assumption of the formula. If it does not hold, the result means nothing.
struct Condition {
  std::string_view text;
  std::string_view check =
      "";  // an expression over the inputs and the result; empty: not computable
};

struct Formula {
  std::string_view id;
  std::string_view title;
  std::string_view expression;
  FormulaResult result;
  std::vector<FormulaInput> inputs;
  std::string_view source;
  std::vector<Condition> conditions{};
  std::string_view correction = "";  // the wrong form in the source, and why it is wrong
  std::string_view example;          // inputs as a person types them: "C=989.5TFLOPS W=3.35TB/s"

  char group() const { return id.front(); }
};

}  // namespace stepsim
