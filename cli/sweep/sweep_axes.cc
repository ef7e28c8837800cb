#include "cli/sweep/sweep_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr std::uint64_t kMostPoints = 10'000'000;
constexpr std::int64_t kMostInRange = 1'000'000;

// Whether a part of an axis starts another field: "plan.tp=1".
bool starts_field(std::string_view part) {
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  return part.substr(0, equals).find_first_of("*; ") == std::string_view::npos;
}

// "1..4": the whole numbers from 1 to 4; nothing if the text is something else, or no range to
// follow.
std::optional<std::vector<std::string>> values_of_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const auto first = number_in<std::int64_t>(text.substr(0, dots));
  const auto last = number_in<std::int64_t>(text.substr(dots + 2));
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  if (!first || !last || *first < -kMost || *last > kMost || *last < *first ||
      *last - *first >= kMostInRange) {
    return std::nullopt;
  }
  std::vector<std::string> values;
  for (std::int64_t value = *first; value <= *last; ++value) {
    values.push_back(std::to_string(value));
  }
  return values;
}

std::vector<std::string> values_in(std::string_view text) {
  const char separator = text.find(';') == std::string_view::npos ? ',' : ';';
  std::vector<std::string> values;
  for (const std::string_view part : split_text(text, separator)) {
    if (const auto range = values_of_range(part)) {
      values.insert(values.end(), range->begin(), range->end());
    } else {
      values.emplace_back(part);
    }
  }
  return values;
}

// Returns what is wrong with a value that looks like a range and was not followed; "" if nothing.
std::string trouble_with_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return {};
  const auto first = number_in<std::int64_t>(text.substr(0, dots));
  const auto last = number_in<std::int64_t>(text.substr(dots + 2));
  if (!first || !last) return {};
  return fmt::format("must be a range that rises, of at most {} numbers, as in 1..8, is \"{}\"",
                     kMostInRange, text);
}

std::optional<Problem> problem_of(const SweepAxis& axis, const std::string& source) {
  for (const SweepAxis::Field& field : axis.fields) {
    for (const std::string& value : field.values) {
      const std::string trouble = trouble_with_range(value);
      if (!trouble.empty()) return Problem{source + " " + field.path, trouble};
    }
    if (std::ranges::count(field.values, "") > 0) {
      return Problem{source + " " + field.path, "has an empty value"};
    }
    if (field.values.size() != axis.size()) {
      return Problem{source + " " + field.path,
                     fmt::format("has {} values and {} has {}: fields of one axis go together, so "
                                 "they have as many; axes of their own are crossed",
                                 field.values.size(), axis.fields.front().path, axis.size())};
    }
  }
  return std::nullopt;
}

// Adds a problem and returns nullopt if the text is no axis.
std::optional<SweepAxis> read_axis(std::string_view text, const std::string& source,
                                   std::vector<Problem>& problems) {
  if (!starts_field(text)) {
    problems.push_back(
        {source + " " + shortened(text), "must be a field and its values, as in plan.tp=1,2,4"});
    return std::nullopt;
  }
  std::vector<std::pair<std::string, std::string>> fields;
  for (const std::string_view part : split_text(text, ',')) {
    if (starts_field(part)) {
      const std::size_t equals = part.find('=');
      fields.emplace_back(part.substr(0, equals), part.substr(equals + 1));
    } else {
      fields.back().second.append(",").append(part);
    }
  }
  SweepAxis axis;
  for (auto& [path, values] : fields) axis.fields.push_back({path, values_in(values)});
  if (auto problem = problem_of(axis, source)) {
    problems.push_back(std::move(*problem));
    return std::nullopt;
  }
  return axis;
}

}  // namespace

SweepSpace::SweepSpace(const std::vector<std::string>& texts, const std::string& source,
                       std::vector<Problem>& problems) {
  std::set<std::string> seen;
  std::uint64_t points = 1;
  for (const std::string& text : texts) {
    std::optional<SweepAxis> axis = read_axis(text, source, problems);
    if (!axis) continue;
    for (const SweepAxis::Field& field : axis->fields) {
      if (seen.insert(field.path).second) continue;
      problems.push_back({source + " " + field.path, "is given twice"});
      return;
    }
    if (axis->size() > kMostPoints / points) {
      problems.push_back({source, fmt::format("makes more than {} points", kMostPoints)});
      return;
    }
    points *= axis->size();
    axes_.push_back(std::move(*axis));
  }
}

std::uint64_t SweepSpace::size() const {
  std::uint64_t points = 1;
  for (const SweepAxis& axis : axes_) points *= axis.size();
  return points;
}

std::vector<std::string> SweepSpace::paths() const {
  std::vector<std::string> paths;
  for (const SweepAxis& axis : axes_) {
    for (const SweepAxis::Field& field : axis.fields) paths.push_back(field.path);
  }
  return paths;
}

std::vector<std::string> SweepSpace::values(std::uint64_t number) const {
  std::uint64_t left = size();
  std::vector<std::string> values;
  for (const SweepAxis& axis : axes_) {
    left /= axis.size();
    const std::size_t at = number / left % axis.size();
    for (const SweepAxis::Field& field : axis.fields) values.push_back(field.values[at]);
  }
  return values;
}

std::vector<std::string> SweepSpace::overrides(std::uint64_t number) const {
  const std::vector<std::string> names = paths();
  std::vector<std::string> texts = values(number);
  for (std::size_t i = 0; i < names.size(); ++i) texts[i] = names[i] + "=" + texts[i];
  return texts;
}

}  // namespace stepsim
