// Functions for fields that all kinds of measured tables share.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/accuracy/accuracy.h"
#include "sim/chips/kernel.h"

namespace stepsim {

// Returns a row with id, source and chip, without a measurement. `hardware_column`: "hardware" or
// "chip".
AccuracyRow start_row(const CsvTable& table, std::size_t record,
                      const std::vector<Hardware>& hardware, std::string_view hardware_column,
                      std::string metric);

// Reads "half", "fp16/bf16", "float32", ... An empty text means bf16. Returns false if there is no
// such type.
bool read_data_type(std::string_view text, DataType& type);

// Reads a type, and the type of the weights where its name says that they are narrower than the
// inputs: "int8_wo", "int4_wo" (weight only, as TensorRT-LLM has it), "w4a16_mxfp4". Otherwise
// `weights` is unset.
bool read_data_types(std::string_view text, DataType& type, std::optional<DataType>& weights);

// Returns "dgx-h100-16": a cluster of the family with this many chips, but at least one node.
std::string cluster_of(const Hardware& hardware, std::int64_t chips);

// Returns "ranks is "1", must be 2 or more", or "no ranks are given" if the field is empty.
std::string no_value(const CsvTable& table, std::size_t record, std::string_view column,
                     std::string_view accepted);

// Returns whether the caller wants what is done, and no more; other records are skipped as
// kInterrupted.
bool is_ended(const PredictOptions& options);
inline constexpr std::string_view kInterrupted = "interrupted before it was done";

// Throws SimulationInterrupted if the caller wants to stop.
void report(const PredictOptions& options, std::size_t done, std::size_t records);

}  // namespace stepsim
