#include <fmt/format.h>

// toml++ 3.3 asserts that a key begins behind "[" before it looks, and where NDEBUG is defined it
// has compilers assume so. Files come from strangers; without either, the parser says what is
// wrong.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>
#undef TOML_ASSERT
#pragma pop_macro("NDEBUG")

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "import/settings/settings_files.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

std::size_t line_of_toml(const toml::node& node) {
  return node.source().begin.line;
}

// Dates and times, which no setting here is, become null.
Json plain_of_toml(const toml::node& node) {
  if (const auto* const text = node.as_string()) return Json(text->get());
  if (const auto* const whole = node.as_integer()) return Json(whole->get());
  if (const auto* const number = node.as_floating_point()) return Json(number->get());
  if (const auto* const truth = node.as_boolean()) return Json(truth->get());
  return Json();
}

bool has_groups(const toml::array& list) {
  for (const toml::node& element : list) {
    if (element.is_table() || element.is_array()) return true;
  }
  return false;
}

// Each dot of a key makes a table in a table, which toml++ walks and destroys by recursion. Lines
// with few dots, of numbers and names of modules, don't count.
bool has_too_many_dots(std::string_view text) {
  constexpr std::ptrdiff_t kFewDots = 20;
  constexpr std::ptrdiff_t kMostDots = 5'000;
  std::ptrdiff_t all = 0;
  for (const std::string_view line : split_text(text, '\n')) {
    const std::ptrdiff_t dots = std::ranges::count(line, '.');
    if (dots > kFewDots) all += dots;
  }
  return all > kMostDots;
}

void add_toml(std::string_view name, const toml::node& node, SettingsBuilder& builder) {
  const toml::table* const table = node.as_table();
  const toml::array* const list = node.as_array();
  if (table == nullptr && (list == nullptr || !has_groups(*list))) {
    Json value = list == nullptr ? plain_of_toml(node) : Json::array();
    if (list != nullptr) {
      for (const toml::node& element : *list) value.push_back(plain_of_toml(element));
    }
    builder.add(name, std::move(value), line_of_toml(node));
    return;
  }
  if (!builder.open(name)) return;
  if (table != nullptr) {
    for (const auto& [key, member] : *table) {
      add_toml(key.str(), member, builder);
      if (!builder.problem().empty()) return;
    }
  } else {
    std::size_t index = 0;
    for (const toml::node& element : *list) {
      add_toml(std::to_string(index++), element, builder);
      if (!builder.problem().empty()) return;
    }
  }
  builder.close();
}

}  // namespace

void read_toml_settings(std::string_view text, const std::string& file, Settings& settings,
                        std::vector<Problem>& problems) {
  if (has_too_many_dots(text)) {
    problems.push_back({file, "has keys of too many parts: more than 5,000 dots in long lines"});
    return;
  }
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    problems.push_back({fmt::format("{}:{}", file, error.source().begin.line),
                        "is no TOML: " + std::string(error.description())});
    return;
  }
  SettingsBuilder builder(settings, file);
  for (const auto& [key, member] : table) add_toml(key.str(), member, builder);
  if (!builder.problem().empty()) problems.push_back({file, builder.problem()});
}

}  // namespace stepsim
