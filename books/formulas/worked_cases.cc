#include "books/formulas/worked_cases.h"

#include <cmath>
#include <map>
#include <stdexcept>

#include "books/formulas/formula_table.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

// A line of comma-separated values; quotes may hold commas, "" is a quote.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && is_quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[i++];
    } else if (line[i] == '"') {
      is_quoted = !is_quoted;
    } else if (line[i] == ',' && !is_quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return cells;
}

constexpr std::string_view kColumns =
    "id,group,source,inputs,formula,quantity,expected,unit,rel_tol,printed,verdict,note";
constexpr std::size_t kCells = 12;

std::vector<std::string_view> lines_of(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return split_text(text, '\n');
}

// "A01" -> {"A3", "C=197TFLOPS W=820GB/s"}
std::map<std::string, std::pair<std::string, std::string>> read_formulas(std::string_view text) {
  std::map<std::string, std::pair<std::string, std::string>> formulas;
  for (const std::string_view line : lines_of(text)) {
    const std::vector<std::string_view> words = words_of(line);
    if (words.size() < 2) throw std::logic_error("formula of a case: " + std::string(line));
    std::string_view inputs;
    if (words.size() > 2) inputs = {words[2].data(), line.data() + line.size()};
    if (!formulas.try_emplace(std::string(words[0]), words[1], inputs).second) {
      throw std::logic_error("case " + std::string(words[0]) + " has two formulas");
    }
  }
  return formulas;
}

FormulaValues values_of(const Formula& formula, const std::string& inputs) {
  FormulaValues values;
  for (const std::string_view word : words_of(inputs)) {
    const std::size_t equals = word.find('=');
    const std::string symbol(word.substr(0, equals));
    std::optional<double> value;
    for (const FormulaInput& input : formula.inputs) {
      if (input.symbol == symbol) value = read_formula_value(word.substr(equals + 1), input.unit);
    }
    if (!value)
      throw std::logic_error(std::string(formula.id) + " can't take " + std::string(word));
    values[symbol] = *value;
  }
  return values;
}

}  // namespace

std::vector<WorkedCase> read_worked_cases(std::string_view csv,
                                          std::string_view formulas_of_cases) {
  auto formulas = read_formulas(formulas_of_cases);
  std::vector<WorkedCase> cases;
  const std::vector<std::string_view> lines = lines_of(csv);
  if (lines.front() != kColumns) throw std::logic_error("worked cases have other columns");
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = cells_of(lines[i]);
    if (cells.size() != kCells) throw std::logic_error("worked cases: " + std::string(lines[i]));
    const auto formula = formulas.find(cells[0]);
    if (formula == formulas.end()) throw std::logic_error("case " + cells[0] + " has no formula");
    cases.push_back({.id = cells[0],
                     .source = cells[2],
                     .quantity = cells[5],
                     .formula = formula->second.first,
                     .inputs = formula->second.second,
                     .expected = std::stod(cells[6]),
                     .unit = cells[7],
                     .tolerance = std::stod(cells[8]),
                     .printed = cells[9],
                     .verdict = cells[10],
                     .note = cells[11]});
  }
  if (cases.size() != formulas.size()) {
    throw std::logic_error("a formula is given for a case that is not there");
  }
  return cases;
}

double base_units(std::string_view unit) {
  constexpr double kDay = 86400;
  if (unit == "ms") return 1e-3;
  if (unit == "days" || unit == "GPU-days") return kDay;
  if (unit == "years") return 365 * kDay;
  if (unit == "GB") return 1e9;
  return 1;
}

CaseOutcome evaluate_case(const WorkedCase& worked) {
  const Formula* const formula = find_formula(worked.formula);
  if (formula == nullptr) throw std::logic_error("no formula " + worked.formula);
  CaseOutcome outcome;
  outcome.value =
      evaluate(*formula, values_of(*formula, worked.inputs)).value / base_units(worked.unit);
  outcome.difference = worked.expected == 0 ? outcome.value : outcome.value / worked.expected - 1;
  // Tolerance 0 is an exact count, up to the rounding of doubles.
  outcome.agrees = std::abs(outcome.difference) <= worked.tolerance + 1e-12;
  return outcome;
}

}  // namespace stepsim
