#include "measured/timed_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "measured/run_rows.h"
#include "sim/base/field_text.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

// Kernels of up to so many values and multiplications have times and bytes that fit in 64 bits.
constexpr double kMostWork = 0x1p55;

}  // namespace

std::string first_line(const std::vector<Problem>& problems) {
  constexpr std::size_t kLongest = 240;
  return problems.front().field + ": " + shortened(problems.front().message, kLongest);
}

AccuracyRow begin_row(const CsvTable& table, std::size_t record, std::string chip,
                      std::string metric) {
  AccuracyRow row;
  row.id = table.at(record, "id");
  if (row.id.empty()) row.id = fmt::format("{}:{}", table.file, table.lines[record]);
  row.source_id = table.at(record, "source");
  row.grade = table.at(record, "grade");
  row.chip = std::move(chip);
  row.metric = std::move(metric);
  if (const std::string_view assumed = table.at(record, "assumed"); !assumed.empty()) {
    row.assumed.emplace_back(assumed);
  }
  return row;
}

AccuracyRow begin_timed_row(const CsvTable& table, std::size_t record, std::string chip,
                            const std::vector<std::string>& columns) {
  AccuracyRow row = begin_row(table, record, std::move(chip), "time_s");
  std::vector<std::string> known = columns;
  known.insert(known.end(), kColumnsOfARow.begin(), kColumnsOfARow.end());
  known.emplace_back("measured.time");
  for (const std::string& column : table.header) {
    if (table.at(record, column).empty() || std::ranges::count(known, column) > 0) continue;
    row.skipped = column + ": is no column of this kind of table" + did_you_mean(column, known);
    break;
  }
  const double seconds = seconds_in(table.at(record, "measured.time")).value_or(0);
  if (seconds > 0 && std::isfinite(seconds)) row.measured = seconds;
  if (row.skipped.empty() && row.measured <= 0) {
    row.skipped = "measured.time: must be a time above 0: 12us";
  }
  return row;
}

std::string read_type(std::string_view name, std::string_view text, DataType& type) {
  if (text.empty()) return {};
  const std::optional<DataType> read = Text<DataType>::read(text);
  if (read) type = *read;
  if (read) return {};
  return fmt::format("{}: must be {}, is \"{}\"{}", name, Text<DataType>::accepts(),
                     shortened(text), Text<DataType>::hint(text));
}

Shape::Shape(std::string_view text, const std::vector<std::string>& keys) {
  for (const std::string_view part : split_text(text, ',')) {
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    if (equals == std::string_view::npos || std::ranges::count(keys, key) == 0) {
      fail(fmt::format("has \"{}\", must be keys and values of {}", shortened(part),
                       fmt::join(keys, ", ")));
      return;
    }
    values_.emplace_back(key, part.substr(equals + 1));
  }
}

std::string_view Shape::text(std::string_view key) const {
  for (const auto& [known, value] : values_) {
    if (known == key) return value;
  }
  return {};
}

std::int64_t Shape::count(std::string_view key, std::optional<std::int64_t> other) {
  const std::string_view value = text(key);
  if (value.empty() && other) return *other;
  const std::optional<std::int64_t> number = number_in<std::int64_t>(value);
  if (number && *number >= 1) return *number;
  fail(value.empty()
           ? fmt::format("{} must be given", key)
           : fmt::format("{} must be a whole number, 1 or more, is \"{}\"", key, shortened(value)));
  return 1;
}

std::int64_t Shape::size(std::string_view key) {
  const std::int64_t number = count(key);
  product_ *= static_cast<double>(number);
  return number;
}

std::optional<DataType> Shape::type(std::string_view key) {
  if (text(key).empty()) return std::nullopt;
  DataType type{};
  if (std::string problem = read_type(key, text(key), type); !problem.empty()) {
    fail(std::move(problem));
  }
  return type;
}

void Shape::fail(std::string problem) {
  if (problem_.empty()) problem_ = "shape: " + std::move(problem);
}

const std::string& Shape::problem() {
  if (product_ > kMostWork) fail("the product of the sizes must be at most 2^55");
  return problem_;
}

}  // namespace stepsim
