// RowReader reads one row of a measured table, column by column. It keeps the first problem, which
// is the reason for skipping the row, and what was assumed where the row says nothing.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/csv_table.h"

namespace stepsim {

class RowReader {
 public:
  // The table must live as long as the reader.
  RowReader(const CsvTable& table, std::size_t record) : table_(table), record_(record) {}

  std::string_view text(std::string_view column) const { return table_.at(record_, column); }
  // Returns nullopt if the field is blank. Fails if it is no whole number of at least 1 or above
  // the limit of its column, 2^20 ranks or 2^27 of anything else, and then returns nullopt too:
  // what comes out may be divided by. Products of three axes of a plan, or of two other numbers,
  // fit in 64 bits.
  std::optional<std::int64_t> integer(std::string_view column);
  std::int64_t integer_or(std::string_view column, std::int64_t other) {
    return integer(column).value_or(other);
  }
  // Fails if the column is empty or not a whole number, and then returns 1.
  std::int64_t need(std::string_view column);

  void fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }
  const std::string& problem() const { return problem_; }  // empty: no problem

  void assume(std::string what) { assumed_.push_back(std::move(what)); }
  const std::vector<std::string>& assumed() const { return assumed_; }

 private:
  const CsvTable& table_;
  std::size_t record_;
  std::string problem_;
  std::vector<std::string> assumed_;
};

bool contains(std::string_view text, std::string_view part);

// Returns 160 for the key "experts" in "experts=160 topk=6 moe_ffn=1536"; nullopt if the key is
// absent. Numbers above 2^40 come out as 2^40, which no field accepts.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view key);

}  // namespace stepsim
