#include "cli/formula/formula_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "books/formulas/formula_table.h"
#include "books/laboratory/run_study.h"
#include "books/laboratory/study_table.h"
#include "cli/command_line.h"
#include "cli/formula/formula_answer.h"
#include "cli/help/mentions.h"
#include "cli/outputs.h"
#include "cli/session/progress.h"
#include "sim/base/error.h"
#include "sim/base/suggestion.h"
#include "traces/results/report_text.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

po::options_description formula_option_list() {
  po::options_description options("Options", 100, 50);
  add_json_option(options);
  add_input_option(options);
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

using FormulaList = std::vector<const Formula*>;

// Space between columns whose widths follow their longest texts.
constexpr std::size_t kGap = 2;

std::string list_text(const FormulaList& listed) {
  ReportText report(shows_color(STDOUT_FILENO));
  char group = 0;
  for (const Formula* formula : listed) {
    if (formula->group() != group) {
      if (group != 0) report.blank();
      group = formula->group();
      report.line("{}",
                  report.paint(fmt::format("{}  {}", group, name_of_group(group)), Paint::kBold));
    }
    report.line("  {:<20} {}", formula->id, formula->title);
  }
  return report.text();
}

std::string row_of(std::string_view id) {
  return std::string(id.substr(0, id.find('.')));
}

// Returns the ids of study rows, by the formula that they test.
std::map<std::string, std::vector<std::string>, std::less<>> tested_formulas() {
  std::map<std::string, std::vector<std::string>, std::less<>> tested;
  for (const Study& study : studies()) {
    for (const StudyRow& row : study.rows()) {
      tested[row.formula].push_back(row_id(study, row));
    }
  }
  return tested;
}

// Returns the meaning, unless the unit already says it (parameters are counted in parameters).
std::string_view meaning_beside_unit(const FormulaInput& input) {
  return input.meaning == input.unit ? std::string_view() : input.meaning;
}

struct SymbolLine {
  std::string symbol;
  std::string value;  // or unit
  std::string meaning;
};

void add_symbols(const std::vector<SymbolLine>& lines, ReportText& report) {
  std::size_t symbol_width = 8;
  std::size_t value_width = 12;
  for (const SymbolLine& line : lines) {
    symbol_width = std::max(symbol_width, line.symbol.size() + kGap);
    value_width = std::max(value_width, line.value.size() + kGap);
  }
  for (const auto& [symbol, value, meaning] : lines) {
    report.line("    {:<{}}{:<{}}{}", symbol, symbol_width, value, value_width, meaning);
  }
}

std::string explanation(const Formula& formula) {
  ReportText report(shows_color(STDOUT_FILENO));
  add_statement(formula, report);
  std::vector<SymbolLine> lines;
  for (const FormulaInput& input : formula.inputs) {
    lines.push_back(
        {std::string(input.symbol), with_unit(input.unit),
         fmt::format("{}{}", meaning_beside_unit(input),
                     input.otherwise ? fmt::format(" (default: {})", *input.otherwise) : "")});
  }
  add_symbols(lines, report);
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
  std::vector<SymbolLine> lines;
  for (const FormulaInput& input : formula.inputs) {
    if (input.symbol == unknown) continue;
    const auto given = values.find(input.symbol);
    const bool is_default = given == values.end();
    const double value = is_default ? *input.otherwise : given->second;
    lines.push_back(
        {std::string(input.symbol), formula_value_text(value, input.unit),
         fmt::format("{}{}", meaning_beside_unit(input), is_default ? " (default)" : "")});
  }
  add_symbols(lines, report);
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

const ResultTable<FormulaInput>& input_results() {
  static const ResultTable<FormulaInput> kTable = [] {
    ResultTable<FormulaInput> table;
    table.add("symbol", &FormulaInput::symbol, {"as it is written in the expression"});
    table.add("unit", &FormulaInput::unit, {"its unit"});
    table.add("meaning", &FormulaInput::meaning, {"what it is"});
    table.add("default", [](const FormulaInput& input) { return OrNull{input.otherwise}; },
              {"taken where it isn't given; null: it must be"});
    return table;
  }();
  return kTable;
}

// A formula with the ids of the rows that test it.
struct ListedFormula {
  const Formula* formula;
  std::vector<std::string> tested_by{};

  double example_value() const { return evaluate(*formula, example_values(*formula)).value; }
};

std::vector<std::string> conditions_of(const ListedFormula& listed) {
  std::vector<std::string> conditions;
  for (const Condition& condition : listed.formula->conditions) {
    conditions.emplace_back(condition.text);
  }
  return conditions;
}

const ResultTable<ListedFormula>& formula_results() {
  static const ResultTable<ListedFormula> kTable = [] {
    const auto of_formula = [](auto member) {
      return [member](const ListedFormula& listed) { return listed.formula->*member; };
    };
    const auto of_result = [](auto member) {
      return [member](const ListedFormula& listed) { return listed.formula->result.*member; };
    };
    ResultTable<ListedFormula> table;
    table.add("id", of_formula(&Formula::id), {"as in stepsim formula ID"});
    table.add("group",
              [](const ListedFormula& listed) { return name_of_group(listed.formula->group()); },
              {"what it is about"});
    table.add("title", of_formula(&Formula::title), {"what it says"});
    table.add("expression", of_formula(&Formula::expression), {"right of the result's symbol"});
    table.add("result", of_result(&FormulaResult::symbol), {"symbol of the result"});
    table.add("unit", of_result(&FormulaResult::unit), {"of the result"});
    table.list("inputs", input_results(),
               [](const ListedFormula& listed) { return listed.formula->inputs; }, {"its inputs"});
    table.add("source", of_formula(&Formula::source), {"where it stands"});
    table.add("conditions", conditions_of, {"where it holds"});
    table.add("correction", of_formula(&Formula::correction),
              {"what the source prints wrongly; empty: nothing"});
    table.add("example", of_formula(&Formula::example), {"inputs of an example"});
    table.add("example_value", &ListedFormula::example_value, {"its result"});
    table.add("example_text",
              [](const ListedFormula& listed) {
                return formula_value_text(listed.example_value(), listed.formula->result.unit);
              },
              {"the same with its unit"});
    table.add("tested_by", &ListedFormula::tested_by, {"rows of stepsim validate"});
    return table;
  }();
  return kTable;
}

std::string list_json(const FormulaList& listed) {
  const auto tested = tested_formulas();
  std::vector<std::string> objects;
  for (const Formula* formula : listed) {
    const auto rows = tested.find(formula->id);
    objects.push_back(formula_results().json(
        {formula, rows == tested.end() ? std::vector<std::string>{} : rows->second}, 2));
  }
  return json_objects(objects, 0) + '\n';
}

struct AnsweredFormula {
  const Formula* formula;
  const Answer* answer;

  bool is_solved() const { return !answer->inputs.unknown.empty(); }
};

const ResultTable<AnsweredFormula>& answer_results() {
  static const ResultTable<AnsweredFormula> kTable = [] {
    using Answered = AnsweredFormula;
    ResultTable<Answered> table;
    table.add("id", [](const Answered& one) { return one.formula->id; }, {"of the formula"});
    table.add("given",
              [](const Answered& one) {
                const auto& values = one.answer->inputs.values;
                return ByName<double>(values.begin(), values.end());
              },
              {"what was given, by symbol"});
    table.add("symbol",
              [](const Answered& one) {
                return one.is_solved() ? std::string_view(one.answer->inputs.unknown)
                                       : one.formula->result.symbol;
              },
              {"what was asked for"});
    table.add("values",
              [](const Answered& one) {
                return one.is_solved() ? one.answer->solutions
                                       : std::vector<double>{one.answer->evaluation.value};
              },
              {"its value, or all that solve the formula"});
    table.add("warnings", [](const Answered& one) { return one.answer->evaluation.warnings; },
              {"conditions that are not met"});
    return table;
  }();
  return kTable;
}

std::vector<CommandResult> formula_command_results() {
  return {{"with values", &answer_results()},
          {"without values, and each of a list", &formula_results()}};
}

ExitStatus write(const std::string& path, const std::string& text, const std::string& json) {
  Outputs outputs;
  outputs.write(path, json);
  outputs.commit();
  outputs.print(path == "-" ? json : text);
  return outputs.end(ExitStatus::kDone);
}

// Returns the formulas that `word` is about, in the order of the table: those of a group ("E"), or
// those that mention the word or are tested by a study that mentions it. Empty for an id and for
// other words.
FormulaList formulas_about(const std::string& word) {
  const bool is_group = word.size() == 1 && !name_of_group(word[0]).empty();
  std::set<std::string, std::less<>> tested;
  for (const Study& study : studies()) {
    for (const StudyRow& row : study.rows()) {
      if (mentions(study, row, word)) tested.insert(row.formula);
    }
  }
  FormulaList about;
  for (const Formula& formula : formulas()) {
    if (formula.id == word) return {};
    const bool is_about = is_group ? formula.group() == word[0]
                                   : mentions(formula, word) || tested.contains(formula.id);
    if (is_about) about.push_back(&formula);
  }
  return about;
}

FormulaList all_formulas() {
  FormulaList all;
  for (const Formula& formula : formulas()) all.push_back(&formula);
  return all;
}

// Returns the formulas to list; empty if the words ask for one formula.
FormulaList listed_formulas(const std::vector<std::string>& words) {
  if (words.empty()) return all_formulas();
  return words.size() == 1 ? formulas_about(words[0]) : FormulaList{};
}

ExitStatus run_formula_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, formula_option_list(), problems);
  const std::string path = read_output_path(line, "json", OutputFormat::kJson, problems);
  if (const FormulaList listed = listed_formulas(line.words); !listed.empty()) {
    throw_if_any(std::move(problems));
    return write(path, list_text(listed), list_json(listed));
  }
  const Formula* formula = nullptr;
  try {
    formula = &read_formula(line.words[0]);
  } catch (const ConfigError& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    throw ConfigError(problems);
  }
  const std::span<const std::string> words = std::span(line.words).subspan(1);
  if (words.empty()) {
    throw_if_any(std::move(problems));
    return write(
        path, explanation(*formula),
        formula_results().json({formula, tested_formulas()[std::string(formula->id)]}) + '\n');
  }
  const Answer result = answer(*formula, words, std::move(problems));
  return write(path, answer_text(*formula, result),
               answer_results().json({formula, &result}) + '\n');
}

}  // namespace

constinit const Subcommand kFormulaSubcommand = {
    .name = "formula",
    .arguments = "[ID|WORD] [SYMBOL=VALUE...]",
    .summary = "list, explain, evaluate or solve a closed form",
    .description =
        R"(stepsim formula has the closed forms of the books on training at scale. It says when each holds and
where its source prints it wrongly. It simulates nothing.

Usage:
  stepsim formula                           list every formula, by group
  stepsim formula E                         list one group
  stepsim formula fsdp                      list the formulas about a subject
  stepsim formula E7                        explain one: symbols, source, conditions, an example
  stepsim formula E7 B=48000 N=64 F=32768 MX=2 MY=1
  stepsim formula A6 chip=h100-sxm          chip= and model= fill the symbols that they know
  stepsim formula E4 Y_max=16 chip=tpu-v5p W=180GB/s F=?     solve for one input

Values take units: 64MiB, 400Gbps, 50GB/s, 5us, 989TFLOPS. stepsim formula lists all formulas.
)",
    .options = formula_option_list,
    .run = run_formula_command,
    .results = formula_command_results,
};

}  // namespace stepsim
