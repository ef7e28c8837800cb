// Fields that rows of all kinds of measured tables share.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/accuracy/accuracy.h"
#include "sim/chips/kernel.h"

namespace stepsim {

// Id, source and chip; nothing measured yet. `hardware_column`: "hardware" or "chip".
AccuracyRow start_row(const CsvTable& table, std::size_t record,
                      const std::vector<Hardware>& hardware, std::string_view hardware_column,
                      std::string metric);

// "half", "fp16/bf16", "float32": nothing is bf16. False if there is no such type.
bool read_data_type(std::string_view text, DataType& type);

// "dgx-h100-16": a cluster of a family for this many chips, at least a node.
std::string cluster_of(const Hardware& hardware, std::int64_t chips);

// Throws SimulationInterrupted when the caller wants to end.
void report(const PredictOptions& options, std::size_t record, std::size_t records);

}  // namespace stepsim
