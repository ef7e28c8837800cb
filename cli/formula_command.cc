#include "cli/formula_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cmath>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

#include "analysis/formulas/formula_table.h"
#include "cli/command_line.h"
#include "cli/progress.h"
#include "cli/run_outputs.h"
#include "proto/experiment.h"
#include "proto/suggestion.h"
#include "sim/base/error.h"
#include "traces/json_text.h"
#include "traces/output_file.h"
#include "traces/report_text.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

// What the words after the formula's id say.
struct FormulaInputs {
  FormulaValues values;  // those of a chip and a model too; with the result if it is given
  std::string unknown;   // SYMBOL=?; empty: none
};

struct Answer {
  FormulaInputs inputs;
  Evaluation evaluation;          // of the first solution, where one was asked for
  std::vector<double> solutions;  // of `inputs.unknown`
};

po::options_description visible_options() {
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("json", po::value<std::string>()->value_name("FILE"),
      "the same as JSON; - for standard output, and nothing else there");
  add("help", "this text");
  return options;
}

// ---- reading ----

const Formula& read_formula(const std::string& id) {
  if (const Formula* const formula = find_formula(id)) return *formula;
  std::vector<std::string> ids;
  for (const Formula& formula : formulas()) ids.emplace_back(formula.id);
  throw ConfigError(
      {{id, "no such formula" + did_you_mean(id, ids) + " stepsim formula lists them all."}});
}

// The value in the catalog's chip or model; nothing if it is of the other one.
std::optional<double> value_in(const ChipSpec& chip, CatalogValue value) {
  switch (value) {
    case CatalogValue::kChipBf16Peak:
      return chip.peak_of(DataType::kBf16).value();
    case CatalogValue::kChipMemoryBandwidth:
      return chip.memory_bandwidth.value();
    case CatalogValue::kChipMemoryCapacity:
      return chip.memory_capacity.value();
    default:
      return std::nullopt;
  }
}

std::optional<double> value_in(const ModelSpec& model, CatalogValue value) {
  switch (value) {
    case CatalogValue::kModelLayers:
      return model.layers;
    case CatalogValue::kModelHidden:
      return model.hidden;
    case CatalogValue::kModelIntermediate:
      return model.intermediate;
    case CatalogValue::kModelHeads:
      return model.heads;
    case CatalogValue::kModelKvHeads:
      return model.kv_heads;
    case CatalogValue::kModelHeadWidth:
      return model.head_dim;
    case CatalogValue::kModelVocabulary:
      return model.vocabulary;
    case CatalogValue::kModelParameters:
      return parameter_count(model);
    default:
      return std::nullopt;
  }
}

// Fills what is not given otherwise. Something that fills nothing is a problem: it was meant to.
template <typename Source>
void fill(const Formula& formula, const Source& source, const std::string& word,
          FormulaInputs& inputs, std::vector<Problem>& problems) {
  bool knows_one = false;
  for (const FormulaInput& input : formula.inputs) {
    const auto value = value_in(source, input.catalog);
    if (!value) continue;
    knows_one = true;
    if (input.symbol != inputs.unknown)
      inputs.values.try_emplace(std::string(input.symbol), *value);
  }
  if (!knows_one) {
    problems.push_back({word, std::string(formula.id) + " has no symbol that this could fill"});
  }
}

void read_assignment(const Formula& formula, const std::string& symbol, const std::string& text,
                     FormulaInputs& inputs, std::vector<Problem>& problems) {
  std::vector<std::string> symbols;
  std::optional<std::string_view> unit;
  for (const FormulaInput& input : formula.inputs) {
    symbols.emplace_back(input.symbol);
    if (input.symbol == symbol) unit = input.unit;
  }
  const bool is_result = symbol == formula.result.symbol;
  if (is_result) unit = formula.result.unit;
  if (!unit) {
    problems.push_back({symbol, "is no input of " + std::string(formula.id) +
                                    did_you_mean(symbol, symbols) +
                                    " There are: " + comma_separated(symbols)});
    return;
  }
  if (inputs.values.contains(symbol) || inputs.unknown == symbol) {
    problems.push_back({symbol, "is given twice"});
  } else if (text == "?" && is_result) {
    // The result is what is computed anyway.
  } else if (text == "?") {
    if (!inputs.unknown.empty()) problems.push_back({symbol, "only one input can be solved for"});
    inputs.unknown = symbol;
  } else if (const auto value = read_formula_value(text, *unit)) {
    inputs.values[symbol] = *value;
  } else {
    problems.push_back(
        {symbol, fmt::format("must be a number{} that is not negative, is \"{}\"",
                             unit->empty() ? "" : fmt::format(" of {}", *unit), text)});
    inputs.values[symbol] = 1;  // so that it is not reported as missing
  }
}

FormulaInputs read_inputs(const Formula& formula, std::span<const std::string> words,
                          std::vector<Problem>& problems) {
  FormulaInputs inputs;
  std::vector<std::pair<std::string, std::string>> references;  // chip, model
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      problems.push_back({word, "must be SYMBOL=VALUE, as in B=48000"});
      continue;
    }
    const std::string symbol = word.substr(0, equals);
    const std::string text = word.substr(equals + 1);
    const bool is_reference = symbol == "chip" || symbol == "model";
    const auto is_same = [&](const auto& reference) { return reference.first == symbol; };
    if (is_reference && std::any_of(references.begin(), references.end(), is_same)) {
      problems.push_back({symbol, "is given twice"});
    } else if (is_reference) {
      references.emplace_back(symbol, text);
    } else {
      read_assignment(formula, symbol, text, inputs, problems);
    }
  }
  for (const auto& [kind, name] : references) {
    try {
      if (kind == "chip") fill(formula, load_chip(name), kind + "=" + name, inputs, problems);
      if (kind == "model") fill(formula, load_model(name), kind + "=" + name, inputs, problems);
    } catch (const ConfigError& error) {
      for (const Problem& problem : error.problems()) {
        problems.push_back({kind + "=" + name, problem.message});
      }
      // What it would have filled is not reported as missing.
      for (const FormulaInput& input : formula.inputs) {
        if (input.catalog == CatalogValue::kNone) continue;
        inputs.values.try_emplace(std::string(input.symbol), 1);
      }
    }
  }
  return inputs;
}

Answer answer(const Formula& formula, std::span<const std::string> words,
              std::vector<Problem> problems) {
  Answer result{.inputs = read_inputs(formula, words, problems), .evaluation = {}, .solutions = {}};
  const auto& [values, unknown] = result.inputs;
  const std::string symbol(formula.result.symbol);
  FormulaValues given = values;
  given.erase(symbol);
  FormulaValues checked = given;
  if (!unknown.empty()) checked[unknown] = 1;
  const std::vector<Problem> wrong = check_values(formula, checked);
  problems.insert(problems.end(), wrong.begin(), wrong.end());
  if (unknown.empty() && values.contains(symbol)) {
    problems.push_back({symbol, "is the result: to solve for an input, write it as SYMBOL=?"});
  } else if (!unknown.empty() && !values.contains(symbol)) {
    problems.push_back({symbol, "must be given, to solve for " + unknown});
  }
  throw_if_any(std::move(problems));
  if (!unknown.empty()) {
    result.solutions = solve(formula, values, unknown);
    given[unknown] = result.solutions.front();
    // A count that is solved for need not be whole; its conditions are checked at the next whole
    // number.
    for (const FormulaInput& input : formula.inputs) {
      if (input.symbol == unknown && input.range == InputRange::kCount) {
        given[unknown] = std::ceil(given[unknown]);
      }
    }
  }
  result.evaluation = evaluate(formula, given);
  return result;
}

// ---- text ----

std::string with_unit(std::string_view unit) {
  return unit.empty() ? "" : fmt::format("[{}]", unit);
}

// `text` in lines that fit, each behind `indent` blanks.
void add_wrapped(std::string_view text, std::size_t indent, ReportText& report) {
  std::istringstream words{std::string(text)};
  std::string line;
  for (std::string word; words >> word;) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > kReportWidth) {
      report.line("{:{}}{}", "", indent, line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) report.line("{:{}}{}", "", indent, line);
}

void add_statement(const Formula& formula, ReportText& report) {
  report.line("{}  {}", report.paint(formula.id, Paint::kBold), formula.title);
  report.blank();
  add_wrapped(fmt::format("{} = {}  {}", formula.result.symbol, formula.expression,
                          with_unit(formula.result.unit)),
              4, report);
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

std::string explanation(const Formula& formula) {
  ReportText report(shows_color(STDOUT_FILENO));
  add_statement(formula, report);
  for (const FormulaInput& input : formula.inputs) {
    report.line("    {:<8}{:<12}{}{}", input.symbol, with_unit(input.unit), input.meaning,
                input.otherwise ? fmt::format(" (default: {})", *input.otherwise) : "");
  }
  report.blank();
  report.line("Source");
  add_wrapped(formula.source, 4, report);
  if (!formula.conditions.empty()) report.line("Holds where");
  for (const Condition& condition : formula.conditions) add_wrapped(condition.text, 4, report);
  if (!formula.correction.empty()) {
    report.line("Printed wrongly");
    add_wrapped(formula.correction, 4, report);
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
    add_wrapped(others, 4, report);
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

std::string formula_json(const Formula& formula) {
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
      "\"example_value\": {}, \"example_text\": {}}}",
      quoted(formula.id), quoted(name_of_group(formula.group())), quoted(formula.title),
      quoted(formula.expression), quoted(formula.result.symbol), quoted(formula.result.unit),
      inputs, quoted(formula.source), conditions, quoted(formula.correction),
      quoted(formula.example), value, quoted(formula_value_text(value, formula.result.unit)));
}

std::string list_json(std::optional<char> only) {
  std::string text;
  for (const Formula& formula : formulas()) {
    if (only && formula.group() != *only) continue;
    text += (text.empty() ? "[\n" : ",\n") + formula_json(formula);
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
  text << visible_options();
  return text.str();
}

void run_formula_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, visible_options(), problems);
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
    write(path, explanation(*formula), formula_json(*formula) + "\n");
    return;
  }
  const Answer result = answer(*formula, words, std::move(problems));
  write(path, answer_text(*formula, result), answer_json(*formula, result));
}

}  // namespace stepsim
