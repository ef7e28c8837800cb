#include "cli/validate/validate_cases.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "books/formulas/formula_table.h"
#include "books/formulas/worked_cases.h"
#include "cli/outputs.h"
#include "cli/session/progress.h"
#include "proto/catalog/catalog.h"
#include "sim/base/error.h"
#include "sim/base/suggestion.h"
#include "traces/results/report_text.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

struct EvaluatedCase {
  WorkedCase worked;
  CaseOutcome outcome;
};

bool is_named(const WorkedCase& worked, const std::string& word) {
  return worked.id == word || worked.formula == word || worked.formula.substr(0, 1) == word;
}

std::vector<EvaluatedCase> evaluate_cases(const std::vector<std::string>& words) {
  const WorkedCaseTexts texts = worked_case_texts();
  std::vector<EvaluatedCase> evaluated;
  std::vector<std::string> known;
  std::vector<bool> is_known(words.size(), false);
  for (const WorkedCase& worked : read_worked_cases(texts.cases, texts.formulas)) {
    known.push_back(worked.id);
    known.push_back(worked.formula);
    bool is_wanted = words.empty();
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (!is_named(worked, words[i])) continue;
      is_known[i] = true;
      is_wanted = true;
    }
    if (is_wanted) evaluated.push_back({worked, evaluate_case(worked)});
  }
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (is_known[i]) continue;
    problems.push_back(
        {words[i], "no worked case, and no formula of one" +
                       did_you_mean(words[i], known, "stepsim validate --cases shows them all")});
  }
  throw_if_any(std::move(problems));
  return evaluated;
}

std::string text_of(const std::vector<EvaluatedCase>& cases) {
  ReportText report(shows_color(STDOUT_FILENO));
  std::size_t wrong = 0;
  std::size_t misprinted = 0;
  report.line("{:<5}{:<15}{:>14} {:>14} {:<10}  {}", "case", "formula", "computed", "printed", "",
              "what");
  for (const auto& [worked, outcome] : cases) {
    const bool is_misprint = worked.verdict != "ok" && worked.verdict != "derived";
    wrong += outcome.agrees ? 0u : 1u;
    misprinted += is_misprint ? 1u : 0u;
    report.line("{:<5}{:<15}{:>14.6g} {:>14} {:<10}  {}{}", worked.id, worked.formula,
                outcome.value, worked.printed.empty() ? "-" : worked.printed, worked.unit,
                worked.quantity,
                !outcome.agrees ? report.paint("  NOT RIGHT", Paint::kBad)
                : is_misprint   ? report.paint("  printed wrongly", Paint::kDim)
                                : "");
  }
  report.blank();
  report.line("{} worked figures, {}; {} are printed wrongly or loosely in their source",
              cases.size(),
              wrong == 0 ? report.paint("every one comes out right", Paint::kGood)
                         : report.paint(fmt::format("{} NOT RIGHT", wrong), Paint::kBad),
              misprinted);
  return report.text();
}

const ResultTable<EvaluatedCase>& worked_case_results() {
  static const ResultTable<EvaluatedCase> kTable = [] {
    const auto of_case = [](auto member) {
      return [member](const EvaluatedCase& one) { return one.worked.*member; };
    };
    ResultTable<EvaluatedCase> table;
    table.add("id", of_case(&WorkedCase::id), {"of the case"});
    table.add("formula", of_case(&WorkedCase::formula), {"id of the formula"});
    table.add("inputs", of_case(&WorkedCase::inputs), {"as a person types them"});
    table.add("quantity", of_case(&WorkedCase::quantity), {"what is computed"});
    table.add("source", of_case(&WorkedCase::source), {"where it was worked out"});
    table.add("computed", [](const EvaluatedCase& one) { return one.outcome.value; },
              {"by stepsim"});
    table.add("expected", of_case(&WorkedCase::expected), {"the right figure"});
    table.add("unit", of_case(&WorkedCase::unit), {"of both"});
    table.add("tolerance", of_case(&WorkedCase::tolerance), {"relative"});
    table.add("printed", of_case(&WorkedCase::printed), {"as the source prints it"});
    table.add("verdict", of_case(&WorkedCase::verdict), {"whether the source is right"});
    table.add("note", of_case(&WorkedCase::note), {"why it isn't"});
    table.add("as_expected", [](const EvaluatedCase& one) { return one.outcome.agrees; },
              {"whether computed is expected"});
    return table;
  }();
  return kTable;
}

const ResultTable<std::vector<EvaluatedCase>>& worked_cases_results() {
  static const ResultTable<std::vector<EvaluatedCase>> kTable = [] {
    ResultTable<std::vector<EvaluatedCase>> table;
    table.list("worked_cases", worked_case_results(), std::identity{}, {"of the sources"});
    return table;
  }();
  return kTable;
}

}  // namespace

const AnyResultTable& worked_cases_table() {
  return worked_cases_results();
}

ExitStatus validate_cases(const std::vector<std::string>& words, const std::string& json) {
  const std::vector<EvaluatedCase> cases = evaluate_cases(words);
  Outputs outputs;
  const std::string text = worked_cases_results().json(cases) + '\n';
  outputs.write(json, text);
  outputs.commit();
  outputs.print(json == "-" ? text : text_of(cases));
  const auto agrees = [](const EvaluatedCase& one) { return one.outcome.agrees; };
  return outputs.end(std::ranges::all_of(cases, agrees) ? ExitStatus::kDone : ExitStatus::kNo);
}

}  // namespace stepsim
