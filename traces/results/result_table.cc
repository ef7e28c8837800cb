#include "traces/results/result_table.h"

#include <algorithm>
#include <cmath>

#include "sim/base/json_text.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

bool is_nested(const ResultField& field) {
  return field.fields != nullptr;
}

void add_paths(const AnyResultTable& table, const std::string& before,
               std::vector<ResultPath>& paths) {
  for (const ResultField& field : table.fields()) {
    std::string path = before + std::string(field.name);
    paths.push_back({path, &field});
    if (!is_nested(field)) continue;
    add_paths(*field.fields, path + (field.shape == ResultShape::kList ? "[]." : "."), paths);
  }
}

}  // namespace

bool AnyResultTable::has_nested() const {
  return std::ranges::any_of(fields_, is_nested);
}

std::vector<ResultPath> result_paths(const AnyResultTable& table) {
  std::vector<ResultPath> paths;
  add_paths(table, "", paths);
  return paths;
}

std::string json_object(const std::vector<JsonMember>& members, bool in_lines, int depth) {
  if (members.empty()) return "{}";
  const std::string line = '\n' + std::string(static_cast<std::size_t>(2 * depth), ' ');
  const std::string before = in_lines ? line + "  " : "";
  std::string text = "{";
  for (const auto& [name, value] : members) {
    if (text.size() > 1) text += in_lines ? "," : ", ";
    text += before + '"' + json_escaped(name) + "\": " + value;
  }
  return text + (in_lines ? line : "") + '}';
}

std::string json_objects(const std::vector<std::string>& objects, int depth) {
  return depth <= 2 ? json_lines(objects, 2 * (depth + 1)) : json_list(objects);
}

Duration nearest_time(double seconds) {
  return Duration(std::llround(seconds * kPicosecondsPerSecond));
}

std::string json_of(bool value) {
  return value ? "true" : "false";
}

std::string json_of(double value) {
  return json_number(value);
}

std::string json_of(Duration value) {
  return exact_seconds(value);
}

std::string json_of(Bytes value) {
  return std::to_string(value.value());
}

std::string json_of(Bandwidth value) {
  return json_number(value.value());
}

std::string json_of(std::string_view value) {
  return json_quoted(value);
}

std::string json_of_all(const std::vector<std::string>& values) {
  return json_list(values);
}

}  // namespace stepsim
