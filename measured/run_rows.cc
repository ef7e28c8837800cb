#include "measured/run_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "proto/catalog/catalog.h"
#include "schedules/plan/keys/key_groups.h"
#include "sim/base/field_text.h"
#include "sim/base/suggestion.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {
namespace {

constexpr std::string_view kMeasured = "measured.";

// A number in base units, or a quantity with a unit.
template <class Quantity>
std::optional<double> quantity_in(std::string_view text) {
  if (const auto plain = number_in<double>(text)) return plain;
  const std::optional<Quantity> quantity = Text<Quantity>::read(text);
  if (!quantity) return std::nullopt;
  return static_cast<double>(quantity->value());
}

std::optional<double> plain_number(std::string_view text) {
  return number_in<double>(text);
}

// A figure that a column measures: where it goes, and how it is read.
struct Figure {
  std::string_view name;
  std::optional<double> RunMeasures::*member;
  std::optional<double> (*read)(std::string_view text);
  const char* accepted;
};
constexpr Figure kFigures[] = {
    {"step_time", &RunMeasures::step_time_s, seconds_in, "a time above 0: 1.5s"},
    {"tokens_per_s", &RunMeasures::tokens_per_s, plain_number, "a number above 0"},
    {"tokens_per_s_per_chip", &RunMeasures::tokens_per_s_per_chip, plain_number,
     "a number above 0"},
    {"flops_per_chip", &RunMeasures::flops_per_chip, quantity_in<Throughput>,
     "a throughput above 0: 400TFLOPS"},
    {"mfu", &RunMeasures::mfu, plain_number, "a number from 0 to 1"},
    {"peak_memory", &RunMeasures::peak_memory_bytes, quantity_in<Bytes>, "a size above 0: 60GB"},
    {"ttft_mean", &RunMeasures::ttft_mean_s, seconds_in, "a time above 0: 200ms"},
    {"tpot_mean", &RunMeasures::tpot_mean_s, seconds_in, "a time above 0: 20ms"},
    {"output_tokens_per_s_per_chip", &RunMeasures::output_tokens_per_s_per_chip, plain_number,
     "a number above 0"},
};

class RunRowReading {
 public:
  RunRowReading(const CsvTable& table, std::size_t record) : table_(table), record_(record) {}

  RunRow read() {
    for (const std::string& column : table_.header) {
      const std::string_view text = table_.at(record_, column);
      if (text.empty() || std::ranges::count(kColumnsOfARow, column) > 0) continue;
      if (column.starts_with(kMeasured)) {
        read_measure(column, text);
      } else {
        row_.key += column + "=" + std::string(text) + "\n";
        read_cell(column, std::string(text));
      }
    }
    if (row_.source.model.empty()) {
      // All of the model is in columns.
      row_.source.experiment = "row";
      row_.source.text = "model { name: \"model\" }";
    }
    return std::move(row_);
  }

 private:
  void refuse(const std::string& column, const std::string& accepted, std::string_view text) {
    row_.problems.push_back({column, "must be " + accepted + ", is \"" + shortened(text) + "\""});
  }

  std::string placed(const std::string& name) const {
    const std::filesystem::path path(name);
    const bool is_file = ends_like_file(name) && path.is_relative();
    return is_file ? (std::filesystem::path(table_.folder) / path).string() : name;
  }

  // Reads a cell that is no path of --set. Returns false if it is one.
  bool read_named(std::string_view column, const std::string& text) {
    struct Cell {
      std::string_view name;
      std::string* value;
      bool may_be_file = false;
    };
    ServedCells& served = row_.served;
    const Cell cells[] = {{"model", &row_.source.model, true},
                          {"cluster", &row_.source.cluster, true},
                          {"chip", &row_.source.chip, true},
                          {"library", &row_.source.library, true},
                          {"software", &row_.software, true},
                          {"engine", &served.engine},
                          {"requests", &served.requests},
                          {"replicas", &served.replicas},
                          {"prefill", &served.prefill},
                          {"decode", &served.decode},
                          {"chips", &served.chips}};
    const auto* const found = std::ranges::find(cells, column, &Cell::name);
    if (found == std::end(cells)) return false;
    *found->value = found->may_be_file ? placed(text) : text;
    return true;
  }

  void read_cell(const std::string& column, const std::string& text) {
    if (read_named(column, text)) return;
    const auto dot = column.find('.');
    const std::string group = column.substr(0, dot);
    if (dot == std::string::npos) {
      row_.problems.push_back({column,
                               "is no column of measured runs: one of its own, a path of "
                               "--set such as plan.tp, or measured.step_time"});
    } else if (group == "prefill") {
      row_.served.prefill_overrides.push_back(column.substr(dot + 1) + "=" + text);
    } else if (group == "decode") {
      row_.served.decode_overrides.push_back(column.substr(dot + 1) + "=" + text);
    } else if (column == path_of_key(column.substr(dot + 1)) &&
               text.find(',') == std::string::npos) {
      add_key(column + "=" + text);
    } else {
      row_.source.overrides.push_back(column + "=" + text);
    }
  }

  void add_key(const std::string& key) { row_.keys += (row_.keys.empty() ? "" : ",") + key; }

  void read_measure(const std::string& column, std::string_view text) {
    const std::string_view name = std::string_view(column).substr(kMeasured.size());
    if (name == "attention_flops") {
      if (text != "causal" && text != "full") return refuse(column, "causal or full", text);
      row_.measures.attention_flops =
          text == "full" ? AttentionFlops::kFull : AttentionFlops::kCausal;
      return;
    }
    if (name == "memory_figure") return read_memory_figure(column, text);
    const auto* const figure = std::ranges::find(kFigures, name, &Figure::name);
    if (figure == std::end(kFigures)) {
      std::vector<std::string> names = {"measured.attention_flops", "measured.memory_figure"};
      for (const Figure& known : kFigures) names.push_back("measured." + std::string(known.name));
      row_.problems.push_back(
          {column, "is nothing that is measured of runs" + did_you_mean(column, names)});
      return;
    }
    const std::optional<double> value = figure->read(text);
    const bool is_share = figure->member == &RunMeasures::mfu;
    if (!value || !(*value > 0) || !std::isfinite(*value) || (is_share && *value > 1)) {
      return refuse(column, figure->accepted, text);
    }
    row_.measures.*(figure->member) = value;
  }

  void read_memory_figure(const std::string& column, std::string_view text) {
    constexpr std::array<std::string_view, 3> kNames = {"allocated", "reserved", "device"};
    const auto* const found = std::ranges::find(kNames, text);
    if (found == kNames.end()) return refuse(column, "allocated, reserved or device", text);
    row_.measures.memory_figure = static_cast<MemoryFigure>(found - kNames.begin());
  }

  const CsvTable& table_;
  std::size_t record_;
  RunRow row_{};
};

}  // namespace

std::optional<double> seconds_in(std::string_view text) {
  if (const auto plain = number_in<double>(text)) return plain;
  const std::optional<Duration> time = Text<Duration>::read(text);
  return time ? std::optional(to_seconds(*time)) : std::nullopt;
}

RunRow read_run_row(const CsvTable& table, std::size_t record) {
  return RunRowReading(table, record).read();
}

}  // namespace stepsim
