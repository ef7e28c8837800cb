#include "sim/fields/field.h"

#include <algorithm>
#include <cmath>

#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

// Returns "0 (replicated), 1 (optimizer state divided) or 3 (FSDP)".
std::string text_of_choices(const Limits& limits) {
  std::vector<std::string> names;
  for (const auto& [value, meaning] : limits.choices) {
    names.push_back(write_double(value));
    if (!meaning.empty()) names.back() += " (" + std::string(meaning) + ")";
  }
  return either_of(names);
}

// Writes large whole numbers without an exponent.
std::string text_of_bound(double value) {
  constexpr double kMost = 1e15;
  const bool is_whole = value >= -kMost && value <= kMost &&
                        static_cast<double>(static_cast<std::int64_t>(value)) == value;
  return is_whole ? std::to_string(static_cast<std::int64_t>(value)) : write_double(value);
}

bool is_bounded(double bound) {
  return bound > -std::numeric_limits<double>::infinity() &&
         bound < std::numeric_limits<double>::infinity();
}

// Returns "at least 1", "above 0 and at most 1" or "positive".
std::string text_of_bounds(const Limits& limits) {
  const std::string low = (limits.above_low ? "above " : "at least ") + text_of_bound(limits.low);
  const std::string high = (limits.below_high ? "below " : "at most ") + text_of_bound(limits.high);
  if (!is_bounded(limits.low)) return high;
  if (!is_bounded(limits.high)) return limits.above_low && limits.low == 0 ? "positive" : low;
  return low + " and " + high;
}

bool breaks_low(const Limits& limits, double value) {
  return !(limits.above_low ? value > limits.low : value >= limits.low);
}
bool breaks_high(const Limits& limits, double value) {
  return !(limits.below_high ? value < limits.high : value <= limits.high);
}

// If both ends of the range are allowed, the message names only the end that the value passes.
std::string text_of_broken(const Limits& limits, double value) {
  if (limits.above_low || limits.below_high) return text_of_bounds(limits);
  return breaks_low(limits, value) ? "at least " + text_of_bound(limits.low)
                                   : "at most " + text_of_bound(limits.high);
}

std::string path_of(const std::string& prefix, const AnyField& field, std::size_t index) {
  const std::string path = prefix + std::string(field.name());
  return field.is_list() ? path + "[" + std::to_string(index) + "]" : path;
}

void collect_values(const AnyFieldTable& table, const void* spec, const std::string& prefix,
                    std::vector<FieldValue>& values) {
  for (const auto& field : table.fields()) {
    if (field->fields() == nullptr) {
      if (auto text = field->write(spec)) {
        values.push_back({prefix + std::string(field->name()), std::move(*text)});
      }
      continue;
    }
    for (std::size_t i = 0; i < field->count(spec); ++i) {
      collect_values(*field->fields(), field->element(spec, i), path_of(prefix, *field, i) + ".",
                     values);
    }
  }
}

void collect_problems(const AnyFieldTable& table, const void* spec, const std::string& prefix,
                      std::vector<Problem>& problems) {
  for (const auto& field : table.fields()) {
    if (auto problem = limit_problem(*field, spec)) {
      problems.push_back({prefix + std::string(field->name()), std::move(*problem)});
    }
    if (field->fields() == nullptr) continue;
    for (std::size_t i = 0; i < field->count(spec); ++i) {
      collect_problems(*field->fields(), field->element(spec, i), path_of(prefix, *field, i) + ".",
                       problems);
    }
  }
}

}  // namespace

bool within(const Limits& limits, double value) {
  if (!limits.choices.empty()) {
    return std::ranges::any_of(limits.choices,
                               [value](const auto& choice) { return choice.first == value; });
  }
  const bool is_free = !is_bounded(limits.low) && !is_bounded(limits.high);
  if (is_free || (limits.zero_unsets && value == 0)) return true;
  return !breaks_low(limits, value) && !breaks_high(limits, value);
}

std::optional<std::string> limit_problem(const AnyField& field, const void* spec) {
  const std::optional<double> number = field.number(spec);
  if (!number) return std::nullopt;
  const bool is_value = *number != 0 || !field.is_unset_by_zero();
  if (is_value && within(field.limits(), *number)) {
    if (std::isfinite(*number)) return std::nullopt;
    return "must be finite, is " + field.write(spec).value_or("");
  }
  return broken_text(field.limits(), *number, field.write(spec).value_or(""));
}

std::string broken_text(const Limits& limits, double value, const std::string& text) {
  const std::string must =
      limits.choices.empty() ? text_of_broken(limits, value) : text_of_choices(limits);
  return "must be " + must + ", is " + text;
}

std::string text_of(const Limits& limits) {
  if (!limits.choices.empty()) return text_of_choices(limits);
  const bool has_low = is_bounded(limits.low);
  const bool has_high = is_bounded(limits.high);
  if (!has_low && !has_high) return "";
  if (has_low && has_high && !limits.above_low && !limits.below_high) {
    return text_of_bound(limits.low) + " to " + text_of_bound(limits.high);
  }
  return text_of_bounds(limits);
}

const AnyField* AnyFieldTable::find(std::string_view name) const {
  const auto found =
      std::ranges::find(fields_, name, [](const auto& field) { return field->name(); });
  return found == fields_.end() ? nullptr : found->get();
}

std::vector<std::string> AnyFieldTable::names() const {
  std::vector<std::string> names;
  for (const auto& field : fields_) names.emplace_back(field->name());
  return names;
}

void AnyFieldTable::theme(std::string_view title, std::string_view introduction) {
  themes_.push_back({title, introduction, fields_.size()});
}

std::vector<FieldValue> values_in_force(const AnyFieldTable& table, const void* spec) {
  std::vector<FieldValue> values;
  collect_values(table, spec, "", values);
  return values;
}

std::vector<FieldValue> differing(std::vector<FieldValue> values,
                                  const std::vector<FieldValue>& others) {
  std::erase_if(values, [&](const FieldValue& value) {
    return std::ranges::find(others, value) != others.end();
  });
  return values;
}

std::vector<Problem> limit_problems(const AnyFieldTable& table, const void* spec) {
  std::vector<Problem> problems;
  collect_problems(table, spec, "", problems);
  return problems;
}

std::string refused_text(const std::string& accepts, std::string_view text,
                         const std::string& hint) {
  const char* is = accepts.find(',') == std::string::npos ? ", is \"" : "; is \"";
  return "must be " + accepts + is + std::string(text) + "\"" + hint;
}

std::vector<std::string> OuterField::read(std::string_view text, void*) const {
  return {refused_text(accepts(), text, "")};
}

std::string OuterField::accepts() const {
  return "a group of fields: " + comma_separated(fields_->names());
}

}  // namespace stepsim
