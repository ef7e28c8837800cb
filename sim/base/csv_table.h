// CsvTable is a file of comma-separated values: a header, then one record per line (RFC 4180: a
// field may be quoted, "" is a quote, a quoted field may span lines).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

struct CsvTable {
  std::string file;      // without its folder: "collectives.csv"
  std::string folder{};  // in which it lies; empty: the current one
  std::vector<std::string> header{};
  std::vector<std::vector<std::string>> records{};  // each has as many fields as the header
  std::vector<std::uint32_t> lines{};               // line at which each record begins, from 1

  bool has(std::string_view column) const;
  // Returns "" if there is no such column.
  std::string_view at(std::size_t record, std::string_view column) const;
  // Returns nullopt if the whole field is not a number that is finite.
  std::optional<double> number(std::size_t record, std::string_view column) const;
  std::optional<std::int64_t> integer(std::size_t record, std::string_view column) const;
};

// Throws ConfigError if the file cannot be read, a column stands twice in the header, a record has
// more or fewer fields than the header, or a quote is not closed.
CsvTable read_csv(const std::string& path);
// The same of what a file has.
CsvTable csv_of(const std::string& path, const std::string& text);

}  // namespace stepsim
