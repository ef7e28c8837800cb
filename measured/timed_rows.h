// What tables of kernels and of collectives share: a row has a time, and its sizes stand in one
// cell, `shape`, as keys and values: "m=4096,n=4096,k=1024".
//
//   Shape shape(table.at(record, "shape"), {"m", "n", "k"});
//   const std::int64_t m = shape.size("m");
//   if (!shape.problem().empty()) ...

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measured/accuracy.h"
#include "sim/base/error.h"
#include "sim/chips/data_type_text.h"

namespace stepsim {

// Returns the first problem, as the reason to skip a row. Some list all names of the catalog.
std::string first_line(const std::vector<Problem>& problems);

// Returns the row with what tables in own keys say of it, without a measurement.
AccuracyRow begin_row(const CsvTable& table, std::size_t record, std::string chip,
                      std::string metric);

// Likewise of a table of kernels or collectives, with the measured time. Skipped if it has a cell
// in a column that is not among `columns` and those of every row, or no time.
AccuracyRow begin_timed_row(const CsvTable& table, std::size_t record, std::string chip,
                            const std::vector<std::string>& columns);

// Reads the type of a cell or a value; bf16 if it is empty. Returns a problem, or "".
std::string read_type(std::string_view name, std::string_view text, DataType& type);

// Shape reads the keys of a shape. It keeps the first problem.
class Shape {
 public:
  // Any other key than these is a problem.
  Shape(std::string_view text, const std::vector<std::string>& keys);

  // Returns "" if the key is not given.
  std::string_view text(std::string_view key) const;
  // A whole number of at least 1, which must be given, unless there is another. Returns 1 if it
  // isn't.
  std::int64_t count(std::string_view key, std::optional<std::int64_t> other = {});
  // Likewise, of a kernel whose work is the product of its sizes.
  std::int64_t size(std::string_view key);
  // A type that need not be given.
  std::optional<DataType> type(std::string_view key);

  void fail(std::string problem);
  // Also says so if the product of all sizes is too large for times and bytes in 64 bits.
  const std::string& problem();

 private:
  std::vector<std::pair<std::string_view, std::string_view>> values_{};
  double product_ = 1;
  std::string problem_{};
};

}  // namespace stepsim
