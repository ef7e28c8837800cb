#include "analysis/formulas/worked_cases.h"

#include <cmath>
#include <map>
#include <sstream>
#include <stdexcept>

#include "analysis/formulas/formula_table.h"

namespace stepsim {
namespace {

// A line of comma-separated values; quotes may hold commas, "" is a quote.
std::vector<std::string> cells_of(const std::string& line) {
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

// "A01" -> {"A3", "C=197TFLOPS W=820GB/s"}
std::map<std::string, std::pair<std::string, std::string>> read_formulas(std::string_view text) {
  std::map<std::string, std::pair<std::string, std::string>> formulas;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id;
    std::string formula;
    std::string inputs;
    words >> id >> formula >> std::ws;
    std::getline(words, inputs);
    if (!formulas.try_emplace(id, formula, inputs).second) {
      throw std::logic_error("case " + id + " has two formulas");
    }
  }
  return formulas;
}

FormulaValues values_of(const Formula& formula, const std::string& inputs) {
  FormulaValues values;
  std::istringstream words(inputs);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string symbol = word.substr(0, equals);
    std::optional<double> value;
    for (const FormulaInput& input : formula.inputs) {
      if (input.symbol == symbol) value = read_formula_value(word.substr(equals + 1), input.unit);
    }
    if (!value) throw std::logic_error(std::string(formula.id) + " can't take " + word);
    values[symbol] = *value;
  }
  return values;
}

}  // namespace

std::vector<WorkedCase> read_worked_cases(std::string_view csv,
                                          std::string_view formulas_of_cases) {
  auto formulas = read_formulas(formulas_of_cases);
  std::vector<WorkedCase> cases;
  std::istringstream lines{std::string(csv)};
  std::string line;
  std::getline(lines, line);
  if (line != kColumns) throw std::logic_error("worked cases have other columns: " + line);
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() != kCells) throw std::logic_error("worked cases: " + line);
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
