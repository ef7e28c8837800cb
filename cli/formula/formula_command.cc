#include "cli/formula/formula_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <boost/program_options.hpp>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>

#include "analysis/formulas/formula_table.h"
#include "analysis/studies/run_study.h"
#include "analysis/studies/study_table.h"
#include "cli/command_line.h"
#include "cli/formula/formula_answer.h"
#include "cli/progress.h"
#include "cli/standard_output.h"
#include "proto/suggestion.h"
#include "sim/base/error.h"
#include "traces/json_text.h"
#include "traces/output_file.h"
#include "traces/report_text.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

po::options_description formula_option_list() {
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("json", po::value<std::string>()->value_name("FILE"),
      "the same as JSON; - for standard output, and nothing else there");
  add("help", "this text");
  return options;
}

// ---- text ----

std::string with_unit(std::string_view unit) {
  return unit.empty() ? "" : fmt::format("[{}]", unit);
}

void add_statement(const Formula& formula, ReportText& report) {
  report.line("{}  {}", report.paint(formula.id, Paint::kBold), formula.title);
  report.blank();
  report.wrapped(4, fmt::format("{} = {}  {}", formula.result.symbol, formula.expression,
                                with_unit(formula.result.unit)));
  report.blank();
}

std::string list_text(std::optional<char> only) {
  ReportText report(shows_color(STDOUT_FILENO));
  char group = 0;
  for (const Formula& formula : formulas()) {
    if (only && formula.group() != *only) continue;
    if (formula.group() != group) {
      if (group != 0) report.blank();
      group = formula.group();
      report.line("{}",
                  report.paint(fmt::format("{}  {}", group, name_of_group(group)), Paint::kBold));
    }
    report.line("  {:<20} {}", formula.id, formula.title);
  }
  return report.text();
}

std::string row_of(std::string_view id) {
  return std::string(id.substr(0, id.find('.')));
}

// Rows of experiments by the formula that they test.
std::map<std::string, std::vector<std::string>, std::less<>> tested_formulas() {
  std::map<std::string, std::vector<std::string>, std::less<>> tested;
  for (const FormulaExperiment& experiment : formula_experiments()) {
    for (const ExperimentRow& row : experiment.rows()) {
      tested[row.formula].push_back(row_id(experiment, row));
    }
  }
  return tested;
}

std::string explanation(const Formula& formula) {
  ReportText report(shows_color(STDOUT_FILENO));
  add_statement(formula, report);
  for (const FormulaInput& input : formula.inputs) {
    report.line("    {:<8}{:<12}{}{}", input.symbol, with_unit(input.unit), input.meaning,
                input.otherwise ? fmt::format(" (default: {})", *input.otherwise) : "");
  }
  report.blank();
  report.line("Source");
  report.wrapped(4, formula.source);
  if (!formula.conditions.empty()) report.line("Holds where");
  for (const Condition& condition : formula.conditions) report.wrapped(4, condition.text);
  if (!formula.correction.empty()) {
    report.line("Printed wrongly");
    report.wrapped(4, formula.correction);
  }
  report.line("Example");
  report.line("    stepsim formula {} {}", formula.id, formula.example);
  const double value = evaluate(formula, example_values(formula)).value;
  report.line("    {} = {}", formula.result.symbol, formula_value_text(value, formula.result.unit));
  std::string others;
  for (const Formula& other : formulas()) {
    if (row_of(other.id) != row_of(formula.id) || other.id == formula.id) continue;
    others += (others.empty() ? "" : ", ") + std::string(other.id);
  }
  if (!others.empty()) {
    report.line("See also");
    report.wrapped(4, others);
  }
  const auto tested = tested_formulas();
  if (const auto rows = tested.find(formula.id); rows != tested.end()) {
    report.line("Tested by");
    report.line("    stepsim validate {}", formula.id);
    report.wrapped(4, comma_separated(rows->second));
  }
  return report.text();
}

std::string answer_text(const Formula& formula, const Answer& answer) {
  ReportText report(shows_color(STDOUT_FILENO));
  add_statement(formula, report);
  const auto& [values, unknown] = answer.inputs;
  for (const FormulaInput& input : formula.inputs) {
    if (input.symbol == unknown) continue;
    const auto given = values.find(input.symbol);
    report.line(
        "    {:<8}{:<20}{}{}", input.symbol,
        formula_value_text(given == values.end() ? *input.otherwise : given->second, input.unit),
        input.meaning, given == values.end() ? " (default)" : "");
  }
  report.blank();
  const std::string_view symbol = formula.result.symbol;
  if (unknown.empty()) {
    report.line(
        "{}",
        report.paint(fmt::format("{} = {}", symbol,
                                 formula_value_text(answer.evaluation.value, formula.result.unit)),
                     Paint::kBold));
  } else {
    for (const FormulaInput& input : formula.inputs) {
      if (input.symbol != unknown) continue;
      for (const double solution : answer.solutions) {
        report.line(
            "{} gives {} = {}",
            report.paint(fmt::format("{} = {}", unknown, formula_value_text(solution, input.unit)),
                         Paint::kBold),
            symbol, formula_value_text(values.find(symbol)->second, formula.result.unit));
      }
    }
  }
  for (const std::string& warning : answer.evaluation.warnings) {
    report.line("{}", report.paint("warning: " + warning, Paint::kBad));
  }
  return report.text();
}

// ---- JSON ----

std::string quoted(std::string_view text) {
  return "\"" + json_escaped(text) + "\"";
}

std::string formula_json(const Formula& formula, const std::vector<std::string>& tested_by) {
  std::string rows;
  for (const std::string& row : tested_by) rows += (rows.empty() ? "" : ", ") + quoted(row);
  std::string inputs;
  for (const FormulaInput& input : formula.inputs) {
    inputs += fmt::format("{}{{\"symbol\": {}, \"unit\": {}, \"meaning\": {}, \"default\": {}}}",
                          inputs.empty() ? "" : ", ", quoted(input.symbol), quoted(input.unit),
                          quoted(input.meaning),
                          input.otherwise ? fmt::format("{}", *input.otherwise) : "null");
  }
  std::string conditions;
  for (const Condition& condition : formula.conditions) {
    conditions += (conditions.empty() ? "" : ", ") + quoted(condition.text);
  }
  const double value = evaluate(formula, example_values(formula)).value;
  return fmt::format(
      "{{\"id\": {}, \"group\": {}, \"title\": {}, \"expression\": {}, \"result\": {}, \"unit\": "
      "{}, "
      "\"inputs\": [{}], \"source\": {}, \"conditions\": [{}], \"correction\": {}, \"example\": "
      "{}, "
      "\"example_value\": {}, \"example_text\": {}, \"tested_by\": [{}]}}",
      quoted(formula.id), quoted(name_of_group(formula.group())), quoted(formula.title),
      quoted(formula.expression), quoted(formula.result.symbol), quoted(formula.result.unit),
      inputs, quoted(formula.source), conditions, quoted(formula.correction),
      quoted(formula.example), value, quoted(formula_value_text(value, formula.result.unit)), rows);
}

std::string list_json(std::optional<char> only) {
  const auto tested = tested_formulas();
  std::string text;
  for (const Formula& formula : formulas()) {
    if (only && formula.group() != *only) continue;
    const auto rows = tested.find(formula.id);
    text += (text.empty() ? "[\n" : ",\n") +
            formula_json(formula, rows == tested.end() ? std::vector<std::string>{} : rows->second);
  }
  return text + "\n]\n";
}

std::string answer_json(const Formula& formula, const Answer& answer) {
  std::string inputs;
  for (const auto& [symbol, value] : answer.inputs.values) {
    inputs += fmt::format("{}{}: {}", inputs.empty() ? "" : ", ", quoted(symbol), value);
  }
  std::string warnings;
  for (const std::string& warning : answer.evaluation.warnings) {
    warnings += (warnings.empty() ? "" : ", ") + quoted(warning);
  }
  const bool is_solved = !answer.inputs.unknown.empty();
  return fmt::format(
      "{{\"id\": {}, \"given\": {{{}}}, \"symbol\": {}, \"values\": [{}], "
      "\"warnings\": [{}]}}\n",
      quoted(formula.id), inputs,
      quoted(is_solved ? std::string_view(answer.inputs.unknown) : formula.result.symbol),
      is_solved ? fmt::format("{}", fmt::join(answer.solutions, ", "))
                : fmt::format("{}", answer.evaluation.value),
      warnings);
}

void write(const std::string& path, const std::string& text, const std::string& json) {
  if (!path.empty() && path != "-") {
    OutputFile file(path);
    file.write(json);
    file.commit();
  }
  print(path == "-" ? json : text);
}

}  // namespace

std::string describe_formula_options() {
  std::ostringstream text;
  text << formula_option_list();
  return text.str();
}

void run_formula_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, formula_option_list(), problems);
  const std::string path = read_output_path(line, "json", true, problems);
  std::optional<char> group;
  if (line.words.size() == 1 && line.words[0].size() == 1 &&
      !name_of_group(line.words[0][0]).empty()) {
    group = line.words[0][0];
  }
  if (line.words.empty() || group) {
    throw_if_any(std::move(problems));
    write(path, list_text(group), list_json(group));
    return;
  }
  const Formula* formula = nullptr;
  try {
    formula = &read_formula(line.words[0]);
  } catch (const ConfigError& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    throw_if_any(std::move(problems));
  }
  const std::span<const std::string> words = std::span(line.words).subspan(1);
  if (words.empty()) {
    throw_if_any(std::move(problems));
    write(path, explanation(*formula),
          formula_json(*formula, tested_formulas()[std::string(formula->id)]) + "\n");
    return;
  }
  const Answer result = answer(*formula, words, std::move(problems));
  write(path, answer_text(*formula, result), answer_json(*formula, result));
}

}  // namespace stepsim
