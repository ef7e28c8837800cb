#include "analysis/accuracy/row_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/run/simulate.h"

namespace stepsim {

AccuracyRow start_row(const CsvTable& table, std::size_t record,
                      const std::vector<Hardware>& hardware, std::string_view hardware_column,
                      std::string metric) {
  AccuracyRow row;
  row.id = table.at(record, "id");
  if (row.id.empty()) row.id = table.file + ":" + std::to_string(table.lines[record]);
  row.source_id = table.at(record, "source_id");
  if (row.source_id.empty()) row.source_id = table.at(record, "source");
  const std::string_view name = table.at(record, hardware_column);
  const Hardware* entry = find_hardware(hardware, name);
  row.chip = entry == nullptr ? std::string(name) : entry->chip;
  row.metric = std::move(metric);
  return row;
}

bool read_data_type(std::string_view text, DataType& type) {
  for (int index = 0; index < kDataTypes; ++index) {
    const auto known = static_cast<DataType>(index);
    if (name_of(known) != text) continue;
    type = known;
    return true;
  }
  // "sq": SmoothQuant multiplies in int8 (arXiv 2211.10438).
  static const std::vector<std::pair<std::string_view, DataType>> kTypes = {
      {"", DataType::kBf16},        {"bfloat16", DataType::kBf16}, {"fp16/bf16", DataType::kBf16},
      {"half", DataType::kFp16},    {"float16", DataType::kFp16},  {"float", DataType::kFp32},
      {"float32", DataType::kFp32}, {"sq", DataType::kInt8}};
  const auto found = std::ranges::find(kTypes, text, [](const auto& known) { return known.first; });
  if (found == kTypes.end()) return false;
  type = found->second;
  return true;
}

bool read_data_types(std::string_view text, DataType& type, std::optional<DataType>& weights) {
  constexpr std::string_view kFourBits = "w4a16_";
  weights = std::nullopt;
  if (text == "int8_wo" || text == "int4_wo") {
    type = DataType::kBf16;
    weights = text == "int8_wo" ? DataType::kInt8 : DataType::kInt4;
    return true;
  }
  if (!text.starts_with(kFourBits)) return read_data_type(text, type);
  type = DataType::kBf16;
  DataType narrow{};
  if (!read_data_type(text.substr(kFourBits.size()), narrow)) return false;
  weights = narrow;
  return true;
}

std::string cluster_of(const Hardware& hardware, std::int64_t chips) {
  if (!hardware.cluster_has_sizes) return hardware.cluster;
  const std::int64_t node = hardware.chips_per_node;
  return hardware.cluster + "-" + std::to_string((chips + node - 1) / node * node);
}

std::string no_value(const CsvTable& table, std::size_t record, std::string_view column,
                     std::string_view accepted) {
  const std::string_view text = table.at(record, column);
  if (text.empty()) return fmt::format("no {} are given", column);
  return fmt::format("{} is \"{}\", must be {}", column, text, accepted);
}

bool is_ended(const PredictOptions& options) {
  return options.is_ended && options.is_ended();
}

void report(const PredictOptions& options, std::size_t done, std::size_t records) {
  if (options.progress && !options.progress(done, records)) {
    throw SimulationInterrupted("interrupted after " + std::to_string(done) + " records");
  }
}

}  // namespace stepsim
