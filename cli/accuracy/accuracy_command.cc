#include "cli/accuracy/accuracy_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "cli/command_line.h"
#include "cli/html_option.h"
#include "cli/outputs.h"
#include "cli/session/interrupts.h"
#include "cli/session/progress_line.h"
#include "cli/session/session.h"
#include "cli/session/standard_output.h"
#include "measured/accuracy.h"
#include "measured/predict_own_rows.h"
#include "proto/catalog/catalog.h"
#include "sim/base/error.h"
#include "sim/base/field_text.h"
#include "sim/base/parallel.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kListedReasons = 20;

po::options_description accuracy_option_list() {
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("library", po::value<std::string>()->value_name("NAME|FILE"),
      "communication library (default: the chip's); ideal for none");
  add("most-ops", po::value<std::string>()->value_name("N"),
      "skip training runs of more than N ops that have to be simulated, one of ranks that do the "
      "same (default: 40000000, about half a minute)");
  add("threads", po::value<std::string>()->value_name("N"),
      "predict this many training runs at once (default: as many as the machine has cores)");
  add("plan", po::value<std::string>()->value_name("KEYS"),
      "further keys for the plans of serving runs");
  add("engine", po::value<std::string>()->value_name("KEYS"),
      "further keys for the engines of serving runs, or a release of one: vllm@0.11");
  add("template", po::value<std::string>()->value_name("KIND"),
      "print a header with a row, to begin a table of one's own: training, serving, collectives or "
      "kernels");
  add("rows", "print every row in addition to the summary");
  add_json_option(options);
  add_html_option(options);
  add_input_option(options);
  return options;
}

const ResultTable<AccuracyRow>& accuracy_row_results() {
  static const ResultTable<AccuracyRow> kTable = [] {
    ResultTable<AccuracyRow> table;
    table.add("id", &AccuracyRow::id, {"of the row; FILE:LINE where it has none"});
    table.add("source_id", &AccuracyRow::source_id, {"its source"});
    table.add("chip", &AccuracyRow::chip, {"its chip"});
    table.add("metric", &AccuracyRow::metric, {"what was measured"});
    table.add("measured", &AccuracyRow::measured, {"in SI base units"});
    table.add("predicted", [](const AccuracyRow& row) { return OrNull{row.predicted}; },
              {"null: the row was skipped"});
    table.add("relative_error",
              [](const AccuracyRow& row) {
                const bool is_known = row.predicted && std::isfinite(row.relative_error());
                return OrNull{is_known ? std::optional(row.relative_error()) : std::nullopt};
              },
              {"predicted / measured - 1; null: the row was skipped"});
    table.add("skipped", &AccuracyRow::skipped, {"why; empty: it was not"});
    table.add("fits", [](const AccuracyRow& row) { return OrNull{row.fits}; },
              {"whether the prediction fits in memory; null: not asked"});
    table.add("implausible", &AccuracyRow::implausible,
              {"why the measurement can't be; empty: it can"});
    table.add("grade", &AccuracyRow::grade, {"A, B or C"});
    table.add("situation", &AccuracyRow::situation, {"whose interval holds"});
    table.add("interval",
              [](const AccuracyRow& row) {
                return OrNull{row.interval ? std::optional(std::vector<double>{row.interval->low,
                                                                               row.interval->high})
                                           : std::nullopt};
              },
              {"[low, high]: 80 %; null: not known"});
    table.add("assumed", &AccuracyRow::assumed, {"what the row's writer decided"});
    return table;
  }();
  return kTable;
}

const ResultTable<AccuracySummary>& summary_results() {
  static const ResultTable<AccuracySummary> kTable = [] {
    const auto error = [](double AccuracySummary::*member) {
      return [member](const AccuracySummary& line) {
        return OrNull{line.rows > 0 ? std::optional(line.*member) : std::nullopt};
      };
    };
    ResultTable<AccuracySummary> table;
    table.add("source_id", &AccuracySummary::source_id, {"the source"});
    table.add("metric", &AccuracySummary::metric, {"what was measured"});
    table.add("under_specified", &AccuracySummary::under_specified, {"rows that say too little"});
    table.add("rows", &AccuracySummary::rows, {"that were predicted"});
    table.add("implausible", &AccuracySummary::implausible, {"rows that can't be"});
    table.add("median_absolute_relative_error",
              error(&AccuracySummary::median_absolute_relative_error), {"null without rows"});
    table.add("p90_absolute_relative_error", error(&AccuracySummary::p90_absolute_relative_error),
              {"nine of ten are at most this"});
    table.add("mean_relative_error", error(&AccuracySummary::mean_relative_error), {"the bias"});
    table.add("covered", [](const AccuracySummary& line) { return OrNull{line.covered}; },
              {"share of rows within their interval; null: none has one", "0 to 1"});
    return table;
  }();
  return kTable;
}

using AccuracyRows = std::vector<AccuracyRow>;

const ResultTable<AccuracyRows>& accuracy_results() {
  static const ResultTable<AccuracyRows> kTable = [] {
    ResultTable<AccuracyRows> table;
    table.list("rows", accuracy_row_results(), std::identity{}, {"of the tables, in order"});
    table.list("summary", summary_results(),
               [](const AccuracyRows& rows) {
                 std::vector<AccuracySummary> lines = summarise(rows);
                 std::erase_if(lines, [](const auto& line) { return line.source_id == "all"; });
                 return lines;
               },
               {"by source"});
    return table;
  }();
  return kTable;
}

std::vector<CommandResult> accuracy_command_results() {
  return {{"", &accuracy_results()}};
}

// Returns both ends of a long name.
std::string without_middle(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  const std::size_t head = (width - 3) / 2;
  return text.substr(0, head) + "..." + text.substr(text.size() - (width - 3 - head));
}

std::size_t metric_width(const std::vector<AccuracyRow>& rows) {
  std::size_t width = 13;
  for (const AccuracyRow& row : rows) width = std::max(width, row.metric.size());
  return width;
}

std::string rows_table(const std::vector<AccuracyRow>& rows) {
  const std::size_t width = metric_width(rows);
  std::string text = fmt::format("{:<44} {:<16} {:<{}} {:>12} {:>12} {:>9}\n", "row", "chip",
                                 "metric", width, "measured", "predicted", "error");
  for (const AccuracyRow& row : rows) {
    text += fmt::format("{:<44} {:<16} {:<{}} {:>12.5g} ", without_middle(row.id, 44),
                        without_middle(row.chip, 16), row.metric, width, row.measured);
    text += row.predicted
                ? fmt::format("{:>12.5g} {:>+7.1f} %", *row.predicted, 100 * row.relative_error())
                : "skipped: " + row.skipped;
    if (!row.implausible.empty()) text += "  not used: " + row.implausible;
    if (row.fits == false) text += "  does not fit in memory";
    if (!row.assumed.empty()) text += fmt::format("  assumed {}", fmt::join(row.assumed, "; "));
    text += "\n";
  }
  return text + "\n";
}

std::string summary_table(const std::vector<AccuracyRow>& rows) {
  const std::size_t width = metric_width(rows);
  std::string text =
      fmt::format("{:<44} {:<{}} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "source", "metric", width,
                  "rows", "skipped", "median", "p90", "mean", "covered");
  for (const AccuracySummary& line : summarise(rows)) {
    text +=
        fmt::format("{:<44} {:<{}} {:>6} {:>8} ",
                    without_middle(line.source_id + (line.under_specified ? " (grade C)" : ""), 44),
                    line.metric, width, line.rows, line.skipped);
    text += line.rows == 0 ? std::string("       -        -        -")
                           : fmt::format("{:>6.1f} % {:>6.1f} % {:>+6.1f} %",
                                         100 * line.median_absolute_relative_error,
                                         100 * line.p90_absolute_relative_error,
                                         100 * line.mean_relative_error);
    text += line.covered ? fmt::format(" {:>6.0f} %\n", 100 * *line.covered) : "        -\n";
  }
  return text;
}

// Returns a line on the training runs whose plan, as read, needs more memory than a chip has. They
// ran, so something was read or assumed wrongly.
std::string misfits(const std::vector<AccuracyRow>& rows) {
  std::set<std::string> ids;
  for (const AccuracyRow& row : rows) {
    if (row.fits == false) ids.insert(row.id);
  }
  if (ids.empty()) return "";
  return fmt::format("\n{} training runs would not fit in memory as they were read: --rows\n",
                     ids.size());
}

// Returns a line on the measurements that can't be right.
std::string implausible_rows(const std::vector<AccuracyRow>& rows) {
  const auto count =
      std::ranges::count_if(rows, [](const AccuracyRow& row) { return !row.implausible.empty(); });
  if (count == 0) return "";
  return fmt::format("\n{} measurements are not plausible and are not summed up: --rows\n", count);
}

// Returns a line for each reason with its count, most frequent first. A reason of one row names it.
std::string reasons_table(const std::vector<AccuracyRow>& rows) {
  std::map<std::string, std::size_t> counts;
  std::map<std::string, std::string> ids;
  for (const AccuracyRow& row : rows) {
    if (row.predicted) continue;
    ++counts[row.skipped];
    ids[row.skipped] = row.id;
  }
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{},
                           [](const auto& reason) { return reason.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(kListedReasons, sorted.size()); ++i) {
    if (i == 0) text += "\nskipped, and why\n";
    const auto& [reason, count] = sorted[i];
    text += fmt::format("{:>6}  {}{}\n", count, count == 1 ? ids[reason] + ": " : "", reason);
  }
  if (sorted.size() > kListedReasons) {
    text += fmt::format("        and {} more reasons: --rows\n", sorted.size() - kListedReasons);
  }
  return text;
}

ExitStatus print_template(const CommandLine& line) {
  const std::string kind = line.value("template");
  const std::string_view text = table_template(kind);
  if (text.empty()) {
    throw ConfigError({{"--template", "must be training, serving, collectives or kernels, is \"" +
                                          shortened(kind) + "\""}});
  }
  Outputs outputs;
  outputs.print(std::string(text));
  return outputs.end(ExitStatus::kDone);
}

ExitStatus run_accuracy_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, accuracy_option_list(), problems);
  if (line.options.count("template") != 0) return print_template(line);
  if (line.words.empty()) problems.push_back({"FILE.csv", "must be given, one or more"});
  const std::string path = read_output_path(line, "json", OutputFormat::kJson, problems);
  const std::string html = read_html_path(line, {"json"}, problems);
  std::vector<CsvTable> tables;
  for (const std::string& file : line.words) {
    try {
      tables.push_back(read_csv(file));
      if (!is_measured_table(tables.back()))
        problems.push_back({file, std::string(why_no_table())});
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  const std::string library = line.value("library");
  const std::vector<std::string> libraries = list(CatalogKind::kLibrary);
  if (!library.empty() && !looks_like_file(library) &&
      std::ranges::count(libraries, library) == 0) {
    problems.push_back({"--library", "must be a file or one of the catalog, " +
                                         fmt::format("{}", fmt::join(libraries, ", ")) + "; is \"" +
                                         library + "\""});
  }
  PredictOptions limits;
  if (line.options.count("most-ops") != 0) {
    const std::string text = line.value("most-ops");
    const auto most = number_in<decltype(limits.most_ops)>(text);
    if (!most) problems.push_back({"--most-ops", "must be a whole number, is \"" + text + "\""});
    limits.most_ops = most.value_or(limits.most_ops);
  }
  limits.threads = read_threads(line, "threads", problems);
  throw_if_any(std::move(problems));

  std::vector<AccuracyRow> rows;
  RememberedInterrupt interrupt;
  const std::function<bool()> session_goes_on = asks_session();
  for (const CsvTable& table : tables) {
    ProgressLine progress;
    const std::vector<AccuracyRow> of_table = predict(
        table,
        {.library = library,
         .most_ops = limits.most_ops,
         .threads = limits.threads,
         .serving_plan = line.value("plan"),
         .serving_engine = line.value("engine"),
         .change_chip = {},
         .progress =
             [&](std::size_t done, std::size_t all) {
               if (done > 0 && done < all) interrupt.begin();
               if (!progress.is_due()) return true;
               progress.show(fmt::format("{}: {} of {} records", table.file, done, all));
               return true;
             },
         .goes_on =
             [&] { return interrupt.signal() == 0 && (!session_goes_on || session_goes_on()); },
         .is_ended = [&] { return interrupt.signal() != 0; }});
    rows.insert(rows.end(), of_table.begin(), of_table.end());
  }
  Outputs outputs;
  const std::string text = path.empty() && html.empty() ? "" : accuracy_results().json(rows) + '\n';
  outputs.write(path, text);
  if (!html.empty()) outputs.write(html, html_of_result(text));
  outputs.commit();
  outputs.print(path == "-" ? text
                            : (line.options.count("rows") != 0 ? rows_table(rows) : "") +
                                  summary_table(rows) + misfits(rows) + implausible_rows(rows) +
                                  reasons_table(rows));
  if (interrupt.signal() == 0) return outputs.end(ExitStatus::kDone);
  print_error("stepsim: interrupted; the rows that were done are in the result\n");
  return outputs.end(interrupted_by(interrupt.signal()));
}

}  // namespace

constinit const Subcommand kAccuracySubcommand = {
    .name = "accuracy",
    .arguments = "FILE.csv... [options]",
    .summary = "compare predictions with measured tables",
    .description =
        R"(stepsim accuracy simulates the rows of measured tables and says how far off the predictions are.

Usage:
  stepsim accuracy FILE.csv... [options]

A table is in the program's own keys: `--template training` prints a header with a row, and
docs/measured-tables.md explains the columns. Rows that can't be simulated are counted with the
reason.
)",
    .options = accuracy_option_list,
    .run = run_accuracy_command,
    .results = accuracy_command_results,
};

}  // namespace stepsim
