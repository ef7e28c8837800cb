#include "cli/validate/validate_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <optional>

#include "books/formulas/formula_table.h"
#include "books/laboratory/run_study.h"
#include "books/laboratory/study_table.h"
#include "cli/command_line.h"
#include "cli/help/mentions.h"
#include "cli/outputs.h"
#include "cli/session/progress.h"
#include "cli/session/standard_output.h"
#include "cli/validate/validate_cases.h"
#include "experiment/simulation_fields.h"
#include "sim/base/error.h"
#include "sim/base/suggestion.h"
#include "traces/pictures/plot_svg.h"
#include "traces/results/report_text.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr std::array kFidelities = {Fidelity::kLatencyBandwidth, Fidelity::kFlow,
                                    Fidelity::kPacket};
constexpr std::size_t kLeastIdWidth = 30;

// ChosenStudy is a study with those of its rows that were asked for.
struct ChosenStudy {
  Study study;
  std::vector<StudyRow> rows;
};

struct ValidateRequest {
  std::vector<ChosenStudy> chosen;
  std::vector<Fidelity> fidelities;
  std::string plot_folder;
  std::string json;
  bool list = false;
  bool cases = false;
  std::vector<std::string> words;
};

struct Finished {
  const StudyRow* row = nullptr;
  RowOutcome outcome;
};

po::options_description validate_option_list() {
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("fidelity", po::value<std::string>()->value_name("latency-bandwidth|flow|packet|all"),
      "network model (default: flow); all runs the three side by side");
  add("plot", po::value<std::string>()->value_name("DIR"),
      "also draw the sweeps as DIR/*.svg: formulas are lines, simulations are points");
  add("cases",
      "check the worked figures of the books instead: all, or those of a formula or a group");
  add("list", "list the studies and their rows; nothing runs");
  add_json_option(options);
  return options;
}

// ---- reading ----

// Returns the rows that a word names: a study, one of its rows, or the formula that they test. If
// the word is no such id, it returns those whose chapter, title, statement or regime contains it.
std::vector<ChosenStudy> choose_studies(const std::vector<std::string>& words,
                                        std::vector<Problem>& problems) {
  const std::vector<Study> all = studies();
  std::vector<std::string> known;
  std::vector<bool> is_id(words.size(), false);
  for (const Study& study : all) {
    known.emplace_back(study.id);
    for (const StudyRow& row : study.rows()) {
      known.push_back(row_id(study, row));
      for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == study.id || words[i] == known.back() || words[i] == row.formula) {
          is_id[i] = true;
        }
      }
    }
  }
  std::vector<ChosenStudy> chosen;
  std::vector<bool> is_known(words.size(), false);
  for (const Study& study : all) {
    ChosenStudy part{.study = study, .rows = {}};
    for (StudyRow& row : study.rows()) {
      const std::string id = row_id(study, row);
      bool is_wanted = words.empty();
      for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        const bool is_named = is_id[i] ? word == study.id || word == id || word == row.formula
                                       : mentions(study, row, word);
        is_known[i] = is_known[i] || is_named;
        is_wanted = is_wanted || is_named;
      }
      if (is_wanted) part.rows.push_back(std::move(row));
    }
    if (!part.rows.empty()) chosen.push_back(std::move(part));
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (is_known[i]) continue;
    if (find_formula(words[i]) != nullptr) {
      problems.push_back({words[i],
                          "no study tests this formula; stepsim validate --list "
                          "shows which are tested"});
    } else {
      problems.push_back(
          {words[i], "no such study, row, formula or word of a chapter" +
                         did_you_mean(words[i], known, "stepsim validate --list shows them all")});
    }
  }
  return chosen;
}

std::vector<Fidelity> read_fidelities(const std::string& text, std::vector<Problem>& problems) {
  if (text.empty()) return {Fidelity::kFlow};
  if (text == "all") return {kFidelities.begin(), kFidelities.end()};
  if (const auto fidelity = Text<Fidelity>::read(text)) return {*fidelity};
  problems.push_back(
      {"--fidelity", "must be latency-bandwidth, flow, packet or all, is \"" + text + "\""});
  return {};
}

ValidateRequest read_validate_request(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, validate_option_list(), problems);
  ValidateRequest request;
  request.words = line.words;
  request.cases = line.options.count("cases") != 0;
  if (!request.cases) {
    request.chosen = choose_studies(line.words, problems);
  } else {
    for (const char* option : {"fidelity", "plot", "list"}) {
      if (line.options.count(option) == 0) continue;
      problems.push_back({std::string("--") + option, "means nothing with --cases: no case runs"});
    }
  }
  request.fidelities = read_fidelities(line.value("fidelity"), problems);
  request.json = read_output_path(line, "json", OutputFormat::kJson, problems);
  request.list = line.options.count("list") != 0;
  request.plot_folder = read_output_folder(line, "plot", problems);
  throw_if_any(std::move(problems));
  return request;
}

// ---- text ----

std::string range_text(DifferenceRange range) {
  return fmt::format("{:+.2f} .. {:+.2f} %", 100 * range.low, 100 * range.high);
}

void add_heading(const Study& study, ReportText& report) {
  report.blank();
  report.line("{}  {}", report.paint(study.id, Paint::kBold),
              report.paint(study.title, Paint::kBold));
  report.wrapped(4, fmt::format("\"{}\"", study.claim));
  report.wrapped(4, fmt::format("-- {}", study.source));
}

// Returns the id of a row and the space behind it. Most ids are short; the regimes line up behind
// those.
std::string id_column(const std::string& id) {
  return fmt::format("{:<{}}", id + "  ", kLeastIdWidth);
}

void add_row(const StudyRow& row, const std::vector<RowOutcome>& outcomes, ReportText& report) {
  report.line("  {}{} ({})", id_column(outcomes[0].id), row.regime, row.formula);
  for (const RowOutcome& outcome : outcomes) {
    const std::string model =
        outcomes.size() == 1 ? "" : fmt::format("{:<18}", name_of(outcome.fidelity));
    if (!outcome.simulated) {
      report.line("      {}{}", model, report.paint("skipped: " + outcome.skipped, Paint::kDim));
      continue;
    }
    report.line("      {}{:>11} -> {:>11}  {:>+8.2f} %  expected {:<22} {}", model,
                formula_value_text(row.predicted, row.unit),
                formula_value_text(*outcome.simulated, row.unit), 100 * outcome.difference,
                range_text(outcome.expected),
                outcome.as_expected
                    ? report.paint(outcome.holds ? "holds" : "differs", Paint::kGood)
                    : report.paint("NOT AS EXPECTED", Paint::kBad));
  }
  report.wrapped(6, row.why);
}

std::string list_text(const ValidateRequest& request) {
  ReportText report(shows_color(STDOUT_FILENO));
  for (const auto& [study, rows] : request.chosen) {
    add_heading(study, report);
    for (const StudyRow& row : rows) {
      report.line("  {}{} ({}): {}", id_column(row_id(study, row)), row.regime, row.formula,
                  range_text(row.expected));
    }
  }
  return report.text();
}

std::string summary_text(const std::vector<Finished>& finished) {
  ReportText report(shows_color(STDOUT_FILENO));
  std::size_t holding = 0;
  std::size_t differing = 0;
  std::size_t wrong = 0;
  std::size_t skipped = 0;
  for (const auto& [row, outcome] : finished) {
    ++(!outcome.simulated     ? skipped
       : !outcome.as_expected ? wrong
       : outcome.holds        ? holding
                              : differing);
  }
  report.blank();
  report.line("{} rows: the formula holds in {}, differs as derived in {}, {}{}", finished.size(),
              holding, differing,
              wrong == 0 ? report.paint("none is unexpected", Paint::kGood)
                         : report.paint(fmt::format("{} NOT AS EXPECTED", wrong), Paint::kBad),
              skipped == 0 ? "" : fmt::format(", {} skipped", skipped));
  return report.text();
}

// ---- JSON ----

const ResultTable<Finished>& row_results() {
  static const ResultTable<Finished> kTable = [] {
    const auto of_row = [](auto member) {
      return [member](const Finished& finished) { return finished.row->*member; };
    };
    const auto of_outcome = [](auto member) {
      return [member](const Finished& finished) { return finished.outcome.*member; };
    };
    ResultTable<Finished> table;
    table.add("id", of_outcome(&RowOutcome::id), {"STUDY.ROW"});
    table.add("formula", of_row(&StudyRow::formula), {"id of the formula that predicts"});
    table.add("regime", of_row(&StudyRow::regime), {"what is simulated"});
    table.add("fidelity",
              [](const Finished& finished) { return name_of(finished.outcome.fidelity); },
              {"network model"});
    table.add("predicted", of_row(&StudyRow::predicted), {"by the formula, in unit"});
    table.add("simulated",
              [](const Finished& finished) { return OrNull{finished.outcome.simulated}; },
              {"in unit; null: skipped"});
    table.add("unit", of_row(&StudyRow::unit), {"of both"});
    table.add("relative_difference",
              [](const Finished& finished) {
                return OrNull{finished.outcome.simulated
                                  ? std::optional(finished.outcome.difference)
                                  : std::nullopt};
              },
              {"simulated / predicted - 1; null: skipped"});
    table.add("expected_difference",
              [](const Finished& finished) {
                const DifferenceRange& range = finished.outcome.expected;
                return std::vector<double>{range.low, range.high};
              },
              {"[low, high]: from the experiment's own derivation"});
    table.add("as_expected", of_outcome(&RowOutcome::as_expected),
              {"whether it is within them; true if skipped"});
    table.add("holds", of_outcome(&RowOutcome::holds),
              {"whether it is within the regime's tolerance"});
    table.add("tolerance", of_row(&StudyRow::tolerance), {"of the regime"});
    table.add("why", of_row(&StudyRow::why),
              {"the mechanism behind the difference, or why there is none"});
    table.add("skipped", of_outcome(&RowOutcome::skipped), {"why it did not run; empty: it ran"});
    return table;
  }();
  return kTable;
}

const ResultTable<ChosenStudy>& study_results() {
  static const ResultTable<ChosenStudy> kTable = [] {
    const auto of_study = [](auto member) {
      return [member](const ChosenStudy& chosen) { return chosen.study.*member; };
    };
    ResultTable<ChosenStudy> table;
    table.add("id", of_study(&Study::id), {"as in stepsim validate ID"});
    table.add("title", of_study(&Study::title), {"what is asked"});
    table.add("source", of_study(&Study::source), {"where the claim stands"});
    table.add("claim", of_study(&Study::claim), {"what the source says"});
    table.add("finding", of_study(&Study::finding), {"what the simulation says of it"});
    return table;
  }();
  return kTable;
}

struct Validation {
  const ValidateRequest* request;
  const std::vector<Finished>* finished;
};

const ResultTable<Validation>& validation_results() {
  static const ResultTable<Validation> kTable = [] {
    ResultTable<Validation> table;
    table.list("studies", study_results(),
               [](const Validation& all) { return all.request->chosen; }, {"that were asked for"});
    table.list("cases", row_results(), [](const Validation& all) { return *all.finished; },
               {"rows of the studies, on each network model"});
    return table;
  }();
  return kTable;
}

std::vector<CommandResult> validate_command_results() {
  return {{"studies", &validation_results()}, {"--cases", &worked_cases_table()}};
}

// ---- running ----

void write_plots(const ValidateRequest& request, const ChosenStudy& chosen,
                 const Laboratory& laboratory, Outputs& outputs) {
  if (request.plot_folder.empty() || chosen.study.sweeps == nullptr) return;
  for (const Sweep& sweep : chosen.study.sweeps()) {
    outputs.write(request.plot_folder + "/" + sweep.name + ".svg",
                  plot_svg(run_sweep(sweep, laboratory)));
    outputs.commit();
  }
}

// Without a reader of what it prints, such a request has no purpose.
bool prints_only(const ValidateRequest& request) {
  return request.plot_folder.empty() && (request.json.empty() || request.json == "-");
}

ExitStatus status_of(const std::vector<Finished>& finished) {
  const auto as_expected = [](const Finished& row) { return row.outcome.as_expected; };
  return std::ranges::all_of(finished, as_expected) ? ExitStatus::kDone : ExitStatus::kNo;
}

ExitStatus run_validate_command(const std::vector<std::string>& arguments) {
  const ValidateRequest request = read_validate_request(arguments);
  if (request.cases) return validate_cases(request.words, request.json);
  if (request.list) {
    print(list_text(request));
    return ExitStatus::kDone;
  }
  Outputs outputs;
  std::vector<Finished> finished;
  std::size_t done = 0;
  for (const ChosenStudy& chosen : request.chosen) {
    Progress progress(fmt::format("{} ({} of {})", chosen.study.id, ++done, request.chosen.size()));
    SimulationOptions watched;
    progress.watch(watched);
    Laboratory laboratory{.fidelity = request.fidelities[0],
                          .progress = watched.progress,
                          .progress_context = watched.progress_context};
    ReportText report(shows_color(STDOUT_FILENO));
    add_heading(chosen.study, report);
    for (const StudyRow& row : chosen.rows) {
      std::vector<RowOutcome> outcomes;
      for (const Fidelity fidelity : request.fidelities) {
        laboratory.fidelity = fidelity;
        outcomes.push_back(run_row(chosen.study, row, laboratory));
        finished.push_back({&row, outcomes.back()});
      }
      add_row(row, outcomes, report);
    }
    if (!chosen.study.finding.empty()) report.wrapped(4, chosen.study.finding);
    laboratory.fidelity = request.fidelities.size() > 1 ? Fidelity::kFlow : request.fidelities[0];
    write_plots(request, chosen, laboratory, outputs);
    progress.wipe();
    if (request.json != "-") outputs.print(report.text());
    if (!outputs.is_heard() && prints_only(request)) return outputs.end(ExitStatus::kDone);
  }
  const std::string json =
      request.json.empty() ? "" : validation_results().json({&request, &finished}) + '\n';
  outputs.write(request.json, json);
  outputs.commit();
  outputs.print(request.json == "-" ? json : summary_text(finished));
  return outputs.end(status_of(finished));
}

}  // namespace

constinit const Subcommand kValidateSubcommand = {
    .name = "validate",
    .arguments = "[ID|WORD...] [options]",
    .summary = "compare what the books say with simulations",
    .description =
        R"(stepsim validate compares what the books say with simulations of it. Each row shows the predicted and
the simulated value, their difference, the difference that the mechanism explains, and the mechanism.

Usage:
  stepsim validate                 every study, a minute or less
  stepsim validate fsdp            the studies about a subject: any word of a chapter's name, of a
                                   statement or of a regime ("part 5", bubble, nvswitch, latency)
  stepsim validate S3 S5.knee      studies and rows by id
  stepsim validate B1              the rows that test a formula
  stepsim validate --list          the studies, with the books' statements
  stepsim validate --cases         the worked figures of the books, through stepsim formula

Exit status 1 unless every row is as expected.
)",
    .options = validate_option_list,
    .run = run_validate_command,
    .results = validate_command_results,
};

}  // namespace stepsim
