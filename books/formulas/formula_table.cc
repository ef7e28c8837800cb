#include "books/formulas/formula_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

// Writes six significant digits, and whole numbers in full.
std::string number_text(double value) {
  const bool is_whole = std::abs(value) < 1e15 && value == std::floor(value);
  std::array<char, 32> text;
  const auto [end, error] =
      std::to_chars(text.begin(), text.end(), value, std::chars_format::general, is_whole ? 15 : 6);
  return {text.begin(), end};
}

// Durations may be years of chip time, more than simulated time can represent.
struct TimeUnit {
  std::string_view name;
  double seconds;
};
constexpr std::array kTimeUnits{
    TimeUnit{"ps", 1e-12}, TimeUnit{"ns", 1e-9}, TimeUnit{"us", 1e-6}, TimeUnit{"ms", 1e-3},
    TimeUnit{"s", 1},      TimeUnit{"min", 60},  TimeUnit{"h", 3600},  TimeUnit{"d", 86400},
};

struct Scale {
  std::string_view prefix;
  double factor;
};
constexpr std::array kScales{Scale{"p", 1e-12}, Scale{"n", 1e-9}, Scale{"u", 1e-6},
                             Scale{"m", 1e-3},  Scale{"", 1},     Scale{"k", 1e3},
                             Scale{"M", 1e6},   Scale{"G", 1e9},  Scale{"T", 1e12},
                             Scale{"P", 1e15},  Scale{"E", 1e18}};

bool takes_prefix(std::string_view unit) {
  return unit == "B" || unit == "s" || unit == "B/s" || unit == "FLOP" || unit == "FLOP/s";
}

// Returns the number at the start and the text after it, without leading blanks.
std::optional<std::pair<double, std::string_view>> split_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || text.front() == '-') return std::nullopt;
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return std::pair(number, rest);
}

std::optional<double> with_unit(std::string_view text, double number, std::string_view suffix,
                                std::string_view unit) {
  if (unit == "s") {
    for (const TimeUnit& known : kTimeUnits) {
      if (known.name == suffix) return number * known.seconds;
    }
  } else if (unit == "B/s") {
    if (const auto rate = parse_bandwidth(text)) return rate->value();
  } else if (unit == "FLOP/s") {
    if (const auto rate = parse_throughput(text)) return rate->value();
  } else if (unit == "B") {
    // Sizes may be fractions of a byte or more than 2^63, which parse_bytes() does not accept.
    const std::string one = "1" + std::string(suffix);
    if (const auto size = parse_bytes(one)) return number * static_cast<double>(size->value());
  } else if (unit == "FLOP") {
    for (const Scale& scale : kScales) {
      if (scale.factor > 1 && suffix == std::string(scale.prefix) + "FLOP") {
        return number * scale.factor;
      }
    }
  }
  if (!unit.empty() && suffix == unit) return number;
  return std::nullopt;
}

std::string_view range_text(InputRange range) {
  switch (range) {
    case InputRange::kPositive:
      return "above 0";
    case InputRange::kNotNegative:
      return "at least 0";
    case InputRange::kCount:
      return "a whole number from 1 on";
    case InputRange::kFraction:
      return "above 0 and at most 1";
  }
  return "";
}

bool is_in(InputRange range, double value) {
  if (!std::isfinite(value)) return false;
  switch (range) {
    case InputRange::kPositive:
      return value > 0;
    case InputRange::kNotNegative:
      return value >= 0;
    case InputRange::kCount:
      return value >= 1 && value == std::floor(value);
    case InputRange::kFraction:
      return value > 0 && value <= 1;
  }
  return false;
}

std::string unit_in_brackets(std::string_view unit) {
  return unit.empty() ? "" : " [" + std::string(unit) + "]";
}

const FormulaInput* input_named(const Formula& formula, std::string_view symbol) {
  for (const FormulaInput& input : formula.inputs) {
    if (input.symbol == symbol) return &input;
  }
  return nullptr;
}

FormulaValues completed(const Formula& formula, const FormulaValues& values) {
  FormulaValues all = values;
  for (const FormulaInput& input : formula.inputs) {
    if (input.otherwise) all.try_emplace(std::string(input.symbol), *input.otherwise);
  }
  return all;
}

// ---- solving ----

// Returns the points that the scan tries, in order: 100 in each power of ten, and every count up to
// 4,096.
std::vector<double> scan_points(InputRange range) {
  constexpr int kPointsPerPowerOfTen = 100;
  constexpr int kEveryCountUpTo = 4096;
  const bool is_count = range == InputRange::kCount;
  const bool is_fraction = range == InputRange::kFraction;
  const int first = is_fraction ? -12 : -18;
  const int last = is_fraction ? 0 : is_count ? 18 : 30;
  std::vector<double> points;
  if (range == InputRange::kNotNegative) points.push_back(0);
  for (int i = 1; is_count && i <= kEveryCountUpTo; ++i) points.push_back(i);
  for (int i = first * kPointsPerPowerOfTen; i <= last * kPointsPerPowerOfTen; ++i) {
    const double point = std::pow(10.0, static_cast<double>(i) / kPointsPerPowerOfTen);
    if (!is_count || point > 1) points.push_back(point);
  }
  std::sort(points.begin(), points.end());
  return points;
}

// Difference is the relative difference between the result and the wanted result, as a function of
// one input.
class Difference {
 public:
  Difference(const Formula& formula, const FormulaValues& values, std::string_view unknown,
             double target)
      : expression_(formula.expression),
        values_(values),
        unknown_(unknown),
        target_(target),
        scale_(target == 0 ? 1 : std::abs(target)) {}

  double operator()(double input) {
    values_[unknown_] = input;
    return (expression_.value(values_) - target_) / scale_;
  }

 private:
  Expression expression_;
  FormulaValues values_;
  std::string unknown_;
  double target_;
  double scale_;
};

constexpr double kSolved = 1e-9;  // relative difference of the result

// REQUIRES: the difference changes sign between low and high.
std::optional<double> bisect(Difference& difference, double low, double high) {
  const bool low_is_below = difference(low) < 0;
  for (int step = 0; step < 200; ++step) {
    const double middle = low + (high - low) / 2;
    if (!(middle > low && middle < high)) break;
    const double here = difference(middle);
    if (here == 0) return middle;
    ((here < 0) == low_is_below ? low : high) = middle;
  }
  const double best = std::abs(difference(low)) < std::abs(difference(high)) ? low : high;
  return std::abs(difference(best)) <= kSolved ? std::optional(best) : std::nullopt;
}

// Returns the point at which the difference touches 0 without crossing it, if there is one.
std::optional<double> touch(Difference& difference, double low, double high) {
  for (int step = 0; step < 200; ++step) {
    const double third = (high - low) / 3;
    const bool goes_left = std::abs(difference(low + third)) < std::abs(difference(high - third));
    (goes_left ? high : low) = goes_left ? high - third : low + third;
  }
  const double best = low + (high - low) / 2;
  return std::abs(difference(best)) <= kSolved ? std::optional(best) : std::nullopt;
}

std::vector<double> roots(Difference& difference, InputRange range) {
  constexpr double kZero = 1e-13;  // for rounding errors
  const std::vector<double> points = scan_points(range);
  std::vector<double> heights;
  for (const double point : points) {
    const double here = difference(point);
    heights.push_back(std::abs(here) <= kZero ? 0 : here);
  }
  std::vector<double> found;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double here = heights[i];
    const bool has_before = i > 0 && std::isfinite(heights[i - 1]) && heights[i - 1] != 0;
    if (!std::isfinite(here)) continue;
    if (here == 0) {
      // The result is constant here. The start of the range stands for all of it.
      if (i == 0 || heights[i - 1] != 0) found.push_back(points[i]);
      continue;
    }
    if (!has_before) continue;
    if ((here < 0) != (heights[i - 1] < 0)) {
      if (const auto root = bisect(difference, points[i - 1], points[i])) found.push_back(*root);
    } else if (i + 1 < points.size() && std::abs(here) < std::abs(heights[i - 1]) &&
               std::abs(here) < std::abs(heights[i + 1]) && (here < 0) == (heights[i + 1] < 0)) {
      if (const auto root = touch(difference, points[i - 1], points[i + 1])) {
        found.push_back(*root);
      }
    }
  }
  return found;
}

// Returns the nearest whole number if it solves the formula as well; otherwise the value itself.
double rounded(Difference& difference, double root) {
  const double whole = std::round(root);
  const bool is_close = std::abs(whole - root) <= 1e-7 * std::abs(root);
  return is_close && whole > 0 && std::abs(difference(whole)) <= kSolved ? whole : root;
}

}  // namespace

const Formula* find_formula(std::string_view id) {
  for (const Formula& formula : formulas()) {
    if (formula.id == id) return &formula;
  }
  return nullptr;
}

std::optional<double> read_formula_value(std::string_view text, std::string_view unit) {
  const auto parts = text.empty() ? std::nullopt : split_number(text);
  if (!parts) return std::nullopt;
  const auto& [number, suffix] = *parts;
  if (suffix.empty()) return number;
  const auto value = with_unit(text, number, suffix, unit);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string formula_value_text(double value, std::string_view unit) {
  if (unit.empty()) return number_text(value);
  const std::string plain = number_text(value) + " " + std::string(unit);
  if (!takes_prefix(unit) || value == 0) return plain;
  if (unit == "s" && value >= 1000) {
    constexpr double kDay = 86400;
    const std::string days = number_text(value / kDay) + " days";
    return value >= kDay ? days : number_text(value / 3600) + " h";
  }
  const Scale* scale = kScales.data();
  for (const Scale& candidate : kScales) {
    const bool is_too_small = candidate.factor < 1 && (unit == "B" || unit == "FLOP");
    if (std::abs(value) >= candidate.factor && !is_too_small) scale = &candidate;
  }
  if (std::abs(value) < scale->factor) return plain;
  return number_text(value / scale->factor) + " " + std::string(scale->prefix) + std::string(unit);
}

std::vector<Problem> check_values(const Formula& formula, const FormulaValues& values) {
  std::vector<Problem> problems;
  for (const auto& [symbol, value] : values) {
    if (input_named(formula, symbol) == nullptr) {
      problems.push_back({symbol, "is no input of " + std::string(formula.id)});
    }
  }
  for (const FormulaInput& input : formula.inputs) {
    const std::string symbol(input.symbol);
    const auto given = values.find(symbol);
    if (given == values.end()) {
      if (!input.otherwise) {
        problems.push_back({symbol, "must be given: " + std::string(input.meaning) +
                                        unit_in_brackets(input.unit)});
      }
    } else if (!is_in(input.range, given->second)) {
      problems.push_back({symbol, "must be " + std::string(range_text(input.range)) + ", is " +
                                      number_text(given->second)});
    }
  }
  return problems;
}

Evaluation evaluate(const Formula& formula, const FormulaValues& values) {
  throw_if_any(check_values(formula, values));
  FormulaValues all = completed(formula, values);
  Evaluation evaluation;
  evaluation.value = Expression(formula.expression).value(all);
  if (!std::isfinite(evaluation.value)) {
    throw ConfigError({{std::string(formula.id), "has no finite value for these inputs"}});
  }
  all[std::string(formula.result.symbol)] = evaluation.value;
  for (const Condition& condition : formula.conditions) {
    if (condition.check.empty()) continue;
    if (!(Expression(condition.check).value(all) > 0)) {
      evaluation.warnings.push_back("does not hold: " + std::string(condition.text));
    }
  }
  return evaluation;
}

std::vector<double> solve(const Formula& formula, const FormulaValues& values,
                          std::string_view unknown) {
  const std::string result(formula.result.symbol);
  const FormulaInput* const input = input_named(formula, unknown);
  std::vector<Problem> problems;
  if (input == nullptr) {
    problems.push_back({std::string(unknown), "is no input of " + std::string(formula.id)});
  }
  const auto target = values.find(result);
  if (target == values.end()) {
    problems.push_back({result, "must be given, to solve for " + std::string(unknown) +
                                    unit_in_brackets(formula.result.unit)});
  } else if (!std::isfinite(target->second)) {
    problems.push_back({result, "must be a finite number"});
  }
  FormulaValues others = values;
  others.erase(result);
  FormulaValues checked = others;
  checked.insert_or_assign(std::string(unknown), 1.0);
  for (Problem& problem : check_values(formula, checked)) {
    if (problem.field != unknown) problems.push_back(std::move(problem));
  }
  throw_if_any(std::move(problems));
  Difference difference(formula, completed(formula, others), unknown, target->second);
  std::vector<double> solutions = roots(difference, input->range);
  if (solutions.empty()) {
    throw ConfigError(
        {{std::string(unknown),
          "no value " +
              (input->range == InputRange::kCount ? std::string("from 1 on")
                                                  : std::string(range_text(input->range))) +
              " gives " + result + " = " +
              formula_value_text(target->second, formula.result.unit)}});
  }
  for (double& solution : solutions) solution = rounded(difference, solution);
  return solutions;
}

FormulaValues example_values(const Formula& formula) {
  FormulaValues values;
  for (const std::string_view word : words_of(formula.example)) {
    const std::size_t equals = word.find('=');
    const std::string symbol(word.substr(0, equals));
    const FormulaInput* const input = input_named(formula, symbol);
    const auto value = input == nullptr || equals == std::string::npos
                           ? std::nullopt
                           : read_formula_value(word.substr(equals + 1), input->unit);
    if (!value)
      throw std::logic_error("example of " + std::string(formula.id) + ": " + std::string(word));
    values[symbol] = *value;
  }
  return values;
}

}  // namespace stepsim
