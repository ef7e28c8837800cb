#include "sim/fields/field_assignments.h"

#include <algorithm>

#include "sim/base/field_text.h"
#include "sim/base/suggestion.h"
#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

std::string no_such_key(const std::string& key, const AnyFieldTable& table,
                        const AssignmentRules& rules) {
  std::vector<std::string> keys;
  for (const std::string& name : table.names()) {
    const bool is_allowed =
        rules.allowed.empty() || std::count(rules.allowed.begin(), rules.allowed.end(), name) > 0;
    if (is_allowed) keys.push_back(with_dashes(name));
  }
  const std::string of = rules.who.empty() ? "" : " of " + std::string(rules.who);
  return "no such key" + of +
         did_you_mean(with_dashes(key), keys, "There are: " + comma_separated(keys));
}

// Returns what is wrong; empty if the value was taken.
std::vector<std::string> set_value(const AnyField& field, std::string_view text, void* spec) {
  const std::optional<std::string> before = field.write(spec);
  std::vector<std::string> wrong = field.read(text, spec);
  if (!wrong.empty()) return wrong;
  if (std::optional<std::string> limit = limit_problem(field, spec)) {
    wrong.push_back(std::move(*limit));
    if (before) {
      field.read(*before, spec);
    } else {
      field.clear(spec);
    }
  }
  return wrong;
}

}  // namespace

std::vector<std::string> read_assignments(std::string_view text, const AnyFieldTable& table,
                                          void* spec, const AssignmentRules& rules,
                                          std::vector<Problem>& problems) {
  std::vector<std::string> seen;
  if (text.empty()) return seen;
  for (const std::string_view entry : split_text(text, ',')) {
    const std::size_t equals = entry.find('=');
    std::string key(entry.substr(0, equals));
    const std::string place = rules.option + " " + shortened(key);
    if (equals == std::string_view::npos || key.empty()) {
      problems.push_back({rules.option, "must be keys and values, as in key=1,other=2; has \"" +
                                            shortened(entry) + "\""});
      continue;
    }
    key = with_underscores(key);
    const AnyField* const field = table.find(key);
    const bool is_allowed =
        field != nullptr &&
        (rules.allowed.empty() ||
         std::count(rules.allowed.begin(), rules.allowed.end(), field->name()) > 0);
    if (!is_allowed) {
      problems.push_back({place, no_such_key(key, table, rules)});
    } else if (std::count(seen.begin(), seen.end(), key) > 0) {
      problems.push_back({place, "is given twice"});
    } else {
      for (std::string& wrong : set_value(*field, entry.substr(equals + 1), spec)) {
        problems.push_back({place, std::move(wrong)});
      }
      seen.push_back(key);
    }
  }
  return seen;
}

}  // namespace stepsim
