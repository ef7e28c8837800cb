#include "serving/requests/json_lines.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr int kMostNestedLists = 100;

// A value of an object: one text, or those of a list.
struct JsonColumn {
  bool is_list = false;
  std::vector<std::string> texts{};
};
using JsonRow = std::map<std::string, JsonColumn>;

class JsonScanner {
 public:
  JsonScanner(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  std::uint32_t line() const { return line_; }

  std::optional<JsonRow> next_object() {
    skip_blanks();
    if (at_ == text_.size()) return std::nullopt;
    JsonRow row;
    expect('{');
    if (!take('}')) {
      do {
        skip_blanks();
        const std::string key = string();
        expect(':');
        if (auto column = value(0)) row[key] = std::move(*column);
      } while (take(','));
      expect('}');
    }
    return row;
  }

 private:
  [[noreturn]] void fail(const std::string& wanted) const {
    throw ConfigError({{path_ + ":" + std::to_string(line_),
                        "must have " + wanted + " at \"" +
                            shortened(std::string(text_.substr(at_, 40))) + "\""}});
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) < 4) {
      if (text_[at_++] == '\n') ++line_;
    }
  }
  bool take(char wanted) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) fail(std::string(1, wanted));
  }

  std::string string() {
    expect('"');
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      result += text_[at_++];
    }
    expect('"');
    return result;
  }

  // Returns nullopt for what is left out.
  std::optional<JsonColumn> value(int depth) {
    if (depth > kMostNestedLists) fail("lists that are nested less deep");
    skip_blanks();
    if (at_ == text_.size()) fail("a value");
    if (text_[at_] == '"') return JsonColumn{.texts = {string()}};
    if (text_[at_] == '[') return list(depth);
    if (take('{')) {
      if (take('}')) return std::nullopt;
      do {
        skip_blanks();
        string();
        expect(':');
        value(depth + 1);
      } while (take(','));
      expect('}');
      return std::nullopt;
    }
    const std::size_t end = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    if (end == at_) fail("a value");
    const std::string_view word = text_.substr(at_, end - at_);
    at_ = end;
    return JsonColumn{.texts = {std::string(word)}};
  }

  std::optional<JsonColumn> list(int depth) {
    JsonColumn column{.is_list = true};
    bool is_plain = true;
    expect('[');
    if (take(']')) return column;
    do {
      auto entry = value(depth + 1);
      is_plain = is_plain && entry && !entry->is_list;
      if (is_plain) column.texts.push_back(std::move(entry->texts.front()));
    } while (take(','));
    expect(']');
    if (!is_plain) return std::nullopt;
    return column;
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
};

std::string joined(const JsonColumn& column) {
  std::string text;
  for (const std::string& part : column.texts) text += (text.empty() ? "" : " ") + part;
  return text;
}

// An object whose lengths are lists, as benchmarks write them.
void add_columns(const JsonRow& row, std::uint32_t line, CsvTable& table) {
  std::size_t longest = 0;
  for (const auto& [key, column] : row) {
    if (column.is_list) longest = std::max(longest, column.texts.size());
  }
  std::vector<const JsonColumn*> lists;
  for (const auto& [key, column] : row) {
    if (!column.is_list || column.texts.size() != longest) continue;
    table.header.push_back(key);
    lists.push_back(&column);
  }
  for (std::size_t i = 0; i < longest; ++i) {
    std::vector<std::string>& record = table.records.emplace_back();
    for (const JsonColumn* const list : lists) record.push_back(list->texts[i]);
    table.lines.push_back(line);
  }
}

}  // namespace

CsvTable read_json_lines(const std::string& path, std::string_view text) {
  JsonScanner scanner(path, text);
  CsvTable table{.file = std::filesystem::path(path).filename().string()};
  while (true) {
    const std::uint32_t line = scanner.line();
    const std::optional<JsonRow> row = scanner.next_object();
    if (!row) return table;
    if (table.header.empty()) {
      if (row->contains("input_lens")) {
        add_columns(*row, line, table);
        return table;
      }
      for (const auto& [key, column] : *row) table.header.push_back(key);
    }
    std::vector<std::string>& record = table.records.emplace_back();
    for (const std::string& key : table.header) {
      const auto found = row->find(key);
      record.push_back(found == row->end() ? "" : joined(found->second));
    }
    table.lines.push_back(line);
  }
}

}  // namespace stepsim
