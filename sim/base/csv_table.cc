#include "sim/base/csv_table.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/field_text.h"
#include "sim/base/input_file.h"

namespace stepsim {
namespace {

// Cuts a text into records, field by field.
class Reader {
 public:
  Reader(const std::string& path, const std::string& text) : path_(path), text_(text) {}

  bool done() const { return at_ >= text_.size(); }
  std::uint32_t line() const { return line_; }

  std::vector<std::string> record() {
    std::vector<std::string> fields;
    do {
      fields.push_back(text_.substr(at_, 1) == "\"" ? quoted() : plain());
    } while (take(','));
    take('\r');
    if (take('\n')) ++line_;
    return fields;
  }

 private:
  bool take(char wanted) {
    if (done() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  std::string plain() {
    const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    std::string field = text_.substr(at_, end - at_);
    at_ = end;
    return field;
  }

  std::string quoted() {
    const std::uint32_t begun = line_;
    std::string field;
    ++at_;
    while (true) {
      if (done()) {
        throw ConfigError(
            {{path_ + ":" + std::to_string(begun), "has a quoted field that never ends"}});
      }
      const char c = text_[at_++];
      if (c == '"' && !take('"')) return field;
      if (c == '\n') ++line_;
      field += c;
    }
  }

  const std::string& path_;
  const std::string& text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
};

// A column without a name is one that nobody reads.
std::vector<Problem> repeated_columns(const std::string& path,
                                      const std::vector<std::string>& header) {
  std::vector<Problem> problems;
  std::set<std::string_view> before;
  for (const std::string& column : header) {
    if (column.empty() || before.insert(column).second) continue;
    problems.push_back(
        {path + ":1", "must have each column once, has \"" + shortened(column) + "\" again"});
  }
  return problems;
}

}  // namespace

bool CsvTable::has(std::string_view column) const {
  return std::ranges::find(header, column) != header.end();
}

std::string_view CsvTable::at(std::size_t record, std::string_view column) const {
  const auto found = std::ranges::find(header, column);
  if (found == header.end()) return {};
  return records[record][static_cast<std::size_t>(found - header.begin())];
}

std::optional<double> CsvTable::number(std::size_t record, std::string_view column) const {
  const std::optional<double> value = number_in<double>(at(record, column));
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> CsvTable::integer(std::size_t record, std::string_view column) const {
  return number_in<std::int64_t>(at(record, column));
}

CsvTable read_csv(const std::string& path) {
  const TextOrProblem file = read_input(path, InputKind::kTable);
  if (!file.text) throw ConfigError({{path, "can't be read: " + file.problem}});
  return csv_of(path, *file.text);
}

CsvTable csv_of(const std::string& path, const std::string& text) {
  if (text.find_first_not_of(" \r\n") == std::string::npos) {
    throw ConfigError({{path, "is empty"}});
  }
  const std::filesystem::path place(path);
  CsvTable table{.file = place.filename().string(), .folder = place.parent_path().string()};
  Reader reader(path, text);
  if (!reader.done()) table.header = reader.record();
  std::vector<Problem> problems = repeated_columns(path, table.header);
  constexpr std::size_t kMostWrongRecords = 100;  // that are listed
  while (!reader.done() && problems.size() < kMostWrongRecords) {
    const std::uint32_t line = reader.line();
    std::vector<std::string> record = reader.record();
    if (record.size() == 1 && record.front().empty()) continue;  // an empty line
    if (record.size() != table.header.size()) {
      problems.push_back({path + ":" + std::to_string(line),
                          "must have " + std::to_string(table.header.size()) +
                              " fields as the header, has " + std::to_string(record.size())});
      continue;
    }
    table.records.push_back(std::move(record));
    table.lines.push_back(line);
  }
  throw_if_any(std::move(problems));
  return table;
}

}  // namespace stepsim
