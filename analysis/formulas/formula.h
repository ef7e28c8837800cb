// Formula is one closed form of the documents that stepsim is measured against: text, symbols,
// where it comes from, when it holds, and what the source prints where the source is wrong.
//
// A formula is data. Its function is its own expression (analysis/formulas/expression.h), so what
// `stepsim formula E7` shows is what it computes. To add one, add a row to its group's file
// (group_a.cc ...); the table test evaluates every row's example and solves it back.
//
// Values are in base units: bytes, seconds, bytes/s, FLOP, FLOP/s; counts are plain numbers.
// Nothing here simulates or estimates: sim/base is all that this folder knows of the simulator.
//
// Ids are those of the catalogue the documents were read into: a letter for the group, a number for
// the row. The main formula of a row has the plain id, the others a name behind it: E8,
// E8.unoverlapped.

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

// What of the catalog fills an input that is not given.
enum class CatalogValue : std::uint8_t {
  kNone,
  kChipBf16Peak,
  kChipMemoryBandwidth,
  kChipMemoryCapacity,
  kChipLinkBandwidth,  // TPUs only: one way of an ICI link
  kChipAxisBandwidth,  // TPUs only: both directions of an ICI axis
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
  std::optional<double> otherwise{};  // where it may be left out

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
  std::string_view symbol;  // of no input
  std::string_view unit;
};

// What must hold for the formula to be more than arithmetic.
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
  std::string_view correction = "";  // what a source prints wrongly, and the right form
  std::string_view example;          // inputs as they are typed: "C=989.5TFLOPS W=3.35TB/s"

  char group() const { return id.front(); }
};

}  // namespace stepsim
