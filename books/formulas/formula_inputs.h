// Inputs that many formulas share. Only books/formulas includes this header.
//
// A letter means the same in all formulas as far as the sources allow it. A row that means
// something else by a letter says so with means().

#pragma once

#include "books/formulas/formula.h"
#include "books/formulas/sources.h"

namespace stepsim {

// ---- any count or quantity ----

constexpr FormulaInput count(std::string_view symbol, std::string_view meaning) {
  return {symbol, "", meaning, InputRange::kCount};
}
constexpr FormulaInput positive(std::string_view symbol, std::string_view unit,
                                std::string_view meaning) {
  return {symbol, unit, meaning, InputRange::kPositive};
}
constexpr FormulaInput not_negative(std::string_view symbol, std::string_view unit,
                                    std::string_view meaning) {
  return {symbol, unit, meaning, InputRange::kNotNegative};
}
constexpr FormulaInput fraction(std::string_view symbol, std::string_view meaning) {
  return {symbol, "", meaning, InputRange::kFraction};
}

// ---- chips ----

inline constexpr FormulaInput kC = {"C", "FLOP/s", "peak of one chip in the matmul's data type",
                                    InputRange::kPositive, CatalogValue::kChipBf16Peak};
inline constexpr FormulaInput kHbm = {"W", "B/s", "memory bandwidth of one chip",
                                      InputRange::kPositive, CatalogValue::kChipMemoryBandwidth};
inline constexpr FormulaInput kCapacity = {"Q", "B", "memory of one chip", InputRange::kPositive,
                                           CatalogValue::kChipMemoryCapacity};
inline constexpr FormulaInput kMfu = fraction("MFU", "share of the peak that is reached");
inline constexpr FormulaInput kChips = count("Nc", "chips");

// ---- networks ----

inline constexpr FormulaInput kAxis = {
    "W", "B/s", "both directions of a ring's axis: twice the one-way bandwidth of a link",
    InputRange::kPositive, CatalogValue::kChipAxisBandwidth};
inline constexpr FormulaInput kOneWay = {"W", "B/s", "one-way bandwidth of a link",
                                         InputRange::kPositive, CatalogValue::kChipLinkBandwidth};
inline constexpr FormulaInput kEgress = positive("W", "B/s", "one-way egress bandwidth of one GPU");
inline constexpr FormulaInput kNodeEgress =
    positive("Wn", "B/s", "one-way egress bandwidth of a whole node");
inline constexpr FormulaInput kV = positive(
    "V", "B", "the whole array: output of an all-gather, input of an all-reduce on each device");
// NOLINTBEGIN(readability-identifier-naming): k and the symbol of the source
inline constexpr FormulaInput kn = count("n", "devices of the collective");
inline constexpr FormulaInput kd = count("d", "GPUs of a node");
inline constexpr FormulaInput kM = count("M", "mesh axes that the collective uses");
inline constexpr FormulaInput kHop = not_negative("t", "s", "latency of a hop");

// ---- shapes ----

inline constexpr FormulaInput kB = positive("B", "tokens", "tokens of the global batch");
inline constexpr FormulaInput kD = {"D", "", "model width", InputRange::kCount,
                                    CatalogValue::kModelHidden};
inline constexpr FormulaInput kF = {"F", "", "MLP width", InputRange::kCount,
                                    CatalogValue::kModelIntermediate};
inline constexpr FormulaInput kL = {"L", "", "layers", InputRange::kCount,
                                    CatalogValue::kModelLayers};
inline constexpr FormulaInput kN = {"N", "", "query heads", InputRange::kCount,
                                    CatalogValue::kModelHeads};
inline constexpr FormulaInput kK = {"K", "", "key/value heads", InputRange::kCount,
                                    CatalogValue::kModelKvHeads};
inline constexpr FormulaInput kH = {"H", "", "width of a head", InputRange::kCount,
                                    CatalogValue::kModelHeadWidth};
inline constexpr FormulaInput kVocabulary = {"V", "", "vocabulary", InputRange::kCount,
                                             CatalogValue::kModelVocabulary};
inline constexpr FormulaInput kP = {"P", "parameters", "parameters", InputRange::kPositive,
                                    CatalogValue::kModelParameters};
inline constexpr FormulaInput kT = count("T", "tokens of a sequence");
inline constexpr FormulaInput kX = count("X", "ways of data parallelism or FSDP");
inline constexpr FormulaInput kY = count("Y", "ways of tensor parallelism");
inline constexpr FormulaInput kBytesEach = positive("b", "B", "bytes of an element");

// ---- pipelines, activations ----

inline constexpr FormulaInput kStages = count("P", "pipeline stages");
inline constexpr FormulaInput km = count("m", "micro-batches");
inline constexpr FormulaInput ks = count("s", "tokens of a sequence");
inline constexpr FormulaInput ksequences = count("b", "sequences of a micro-batch");
inline constexpr FormulaInput kh = {"h", "", "model width", InputRange::kCount,
                                    CatalogValue::kModelHidden};
// NOLINTEND(readability-identifier-naming)

}  // namespace stepsim
