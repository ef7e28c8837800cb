#include "cli/calibrate/calibration_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cli/version.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

// "2.87 us", or "none" for what was not set.
std::string value_text(const CalibratedConstant& constant, double value, bool is_set) {
  if (!is_set) return "none";
  return fmt::format("{:.5g}{}{}", value, constant.unit.empty() ? "" : " ", constant.unit);
}

std::string errors_table(const std::vector<CalibrationErrors>& errors) {
  std::string text = fmt::format("  {:<34} {:>6} {:^19} {:^19}\n", "", "rows", "median", "p90");
  const auto change = [](double before, double after) {
    return fmt::format("{:>7} -> {:>7}", percent(before), percent(after));
  };
  for (const CalibrationErrors& line : errors) {
    text += fmt::format("  {:<34} {:>6}", line.of, line.before.rows);
    text += line.before.rows == 0
                ? "\n"
                : fmt::format(" {:>19} {:>19}\n", change(line.before.median, line.after.median),
                              change(line.before.p90, line.after.p90));
  }
  return text;
}

std::string constants_table(const std::vector<CalibratedConstant>& constants) {
  std::string text;
  for (const CalibratedConstant& one : constants) {
    const std::string before = value_text(one, one.before, one.was_set);
    text += one.why_kept.empty()
                ? fmt::format("  {:<18} {:>12} -> {}\n", one.name, before,
                              value_text(one, one.after, true))
                : fmt::format("  {:<18} {:>12} stays: {}\n", one.name, before, one.why_kept);
  }
  return text;
}

std::string report_of(const Calibration& fit) {
  return fmt::format("\n{}: {} shapes, {} of {} constants fitted\n{}{}", fit.of, fit.shapes,
                     fit.fitted(), fit.constants.size(), errors_table(fit.errors),
                     constants_table(fit.constants));
}

std::string files_table(const CalibrationInput& input) {
  std::string text;
  for (const InputSummary& file : input.files()) {
    text += fmt::format("{}: {}, {} of {} rows used\n", file.file, file.what, file.used, file.rows);
  }
  if (!input.unused().empty()) text += "not used, and why\n";
  for (const auto& [reason, rows] : input.unused())
    text += fmt::format("{:>6}  {}\n", rows, reason);
  return text;
}

const ResultTable<CalibrationErrors>& error_results() {
  static const ResultTable<CalibrationErrors> kTable = [] {
    const auto side = [](auto whole, auto member) {
      return [whole, member](const CalibrationErrors& line) { return line.*whole.*member; };
    };
    using Errors = CalibrationErrors;
    using Summary = decltype(Errors::before);
    ResultTable<Errors> table;
    table.add("of", &Errors::of, {"all, fitted, held out, and more"});
    table.add("rows", side(&Errors::before, &Summary::rows), {"how many"});
    table.add("median_before", side(&Errors::before, &Summary::median),
              {"absolute relative error with the catalog's constants"});
    table.add("median_after", side(&Errors::after, &Summary::median), {"with the fitted ones"});
    table.add("p90_before", side(&Errors::before, &Summary::p90), {"nine of ten are at most this"});
    table.add("p90_after", side(&Errors::after, &Summary::p90), {"the same with the fitted ones"});
    return table;
  }();
  return kTable;
}

const ResultTable<CalibratedConstant>& constant_results() {
  static const ResultTable<CalibratedConstant> kTable = [] {
    using Constant = CalibratedConstant;
    ResultTable<Constant> table;
    table.add("name", &Constant::name, {"of the field"});
    table.add("unit", &Constant::unit, {"its unit"});
    table.add("before",
              [](const Constant& one) {
                return OrNull{one.was_set ? std::optional(one.before) : std::nullopt};
              },
              {"null: the catalog has none"});
    table.add("after",
              [](const Constant& one) {
                const bool is_set = one.was_set || one.why_kept.empty();
                return OrNull{is_set ? std::optional(one.after) : std::nullopt};
              },
              {"null: it has none still"});
    table.add("fitted", [](const Constant& one) { return one.why_kept.empty(); },
              {"whether it was fitted"});
    table.add("why_kept", &Constant::why_kept, {"why not"});
    return table;
  }();
  return kTable;
}

const ResultTable<Calibration>& fit_results() {
  static const ResultTable<Calibration> kTable = [] {
    ResultTable<Calibration> table;
    table.add("of", &Calibration::of, {"a type of matmuls, a timing of a library, a power limit"});
    table.add("shapes", &Calibration::shapes, {"different ones"});
    table.list("errors", error_results(), &Calibration::errors, {"before and after"});
    table.list("constants", constant_results(), &Calibration::constants, {"that it has"});
    return table;
  }();
  return kTable;
}

std::vector<const Calibration*> all_fits(const CalibrationResult& result) {
  std::vector<const Calibration*> fits;
  for (const CalibratedChip& chip : result.chips) {
    for (const Calibration& fit : chip.fits) fits.push_back(&fit);
  }
  for (const CalibratedLibrary& library : result.libraries) {
    for (const Calibration& fit : library.calibration.fits) fits.push_back(&fit);
  }
  return fits;
}

}  // namespace

std::string report_of(const CalibrationInput& input, const CalibrationResult& result) {
  std::string text = files_table(input);
  for (const Calibration* fit : all_fits(result)) text += report_of(*fit);
  for (const CalibratedLibrary& library : result.libraries) {
    text += fmt::format("\n{}, as simulated\n{}", library.name,
                        errors_table(library.calibration.errors));
    if (library.calibration.without_timing > 0) {
      text += fmt::format("  {} rows run with no timing of the library\n",
                          library.calibration.without_timing);
    }
  }
  for (const CalibratedChip& chip : result.chips) {
    if (chip.power_changed && chip.sources_of_steps < 3) {
      text +=
          fmt::format("\nThe energy on {} was fitted to {} of the three sources that it needs\n",
                      chip.name, chip.sources_of_steps);
    }
  }
  for (const std::string& remark : result.remarks) text += "\n" + remark + "\n";
  return text;
}

CheckResult check_of(const CalibrationResult& result, double allowed) {
  CheckResult check{.allowed = allowed, .worse = {}};
  for (const Calibration* fit : all_fits(result)) {
    const CalibrationErrors& all = fit->of_all();
    if (all.before.median <= all.after.median + allowed) continue;
    check.worse.push_back(fmt::format("{}: median {}, fitted {}", fit->of,
                                      percent(all.before.median), percent(all.after.median)));
  }
  return check;
}

std::string report_of(const CheckResult& check) {
  const std::string points = fmt::format("{:.3g} points", 100 * check.allowed);
  if (check.worse.empty()) {
    return fmt::format("\nThe constants hold: no fit is better by more than {}\n", points);
  }
  return fmt::format("\nThe constants don't hold: fits are better by more than {}\n  {}\n", points,
                     fmt::join(check.worse, "\n  "));
}

namespace {

struct WholeCalibration {
  const CalibrationInput* input;
  const CalibrationResult* result;
  const std::optional<LaunchCost>* launch;
  const CheckResult* check;  // nullptr: not asked for
};

const ResultTable<InputSummary>& file_results() {
  static const ResultTable<InputSummary> kTable = [] {
    ResultTable<InputSummary> table;
    table.add("file", &InputSummary::file, {"its name"});
    table.add("kind", &InputSummary::what, {"of rows"});
    table.add("rows", &InputSummary::rows, {"that it has"});
    table.add("used", &InputSummary::used, {"of them"});
    return table;
  }();
  return kTable;
}

using UnusedRows = std::pair<std::string, std::int64_t>;

const ResultTable<UnusedRows>& unused_results() {
  static const ResultTable<UnusedRows> kTable = [] {
    ResultTable<UnusedRows> table;
    table.add("reason", &UnusedRows::first, {"why rows were not used"});
    table.add("rows", &UnusedRows::second, {"how many"});
    return table;
  }();
  return kTable;
}

const ResultTable<CalibratedLibrary>& library_results() {
  static const ResultTable<CalibratedLibrary> kTable = [] {
    ResultTable<CalibratedLibrary> table;
    table.add("name", &CalibratedLibrary::name, {"of the library"});
    table.list("errors", error_results(),
               [](const CalibratedLibrary& library) { return library.calibration.errors; },
               {"by operation and ranks, as simulated with all its fits"});
    return table;
  }();
  return kTable;
}

const ResultTable<LaunchCost>& launch_results() {
  static const ResultTable<LaunchCost> kTable = [] {
    ResultTable<LaunchCost> table;
    table.add("launches", &LaunchCost::launches, {"that were seen"});
    table.add("quarter_s", &LaunchCost::seconds, {"a quarter of them take less", "s"});
    table.add("held_out_quarter_s", &LaunchCost::held_out, {"the same of those held out", "s"});
    table.add("median_s", &LaunchCost::median, {"of all", "s"});
    return table;
  }();
  return kTable;
}

const ResultTable<CheckResult>& check_results() {
  static const ResultTable<CheckResult> kTable = [] {
    ResultTable<CheckResult> table;
    table.add("allowed", &CheckResult::allowed, {"by how much a fit may be better"});
    table.add("holds", [](const CheckResult& check) { return check.worse.empty(); },
              {"whether none is better by more"});
    table.add("worse", &CheckResult::worse, {"those that are"});
    return table;
  }();
  return kTable;
}

const ResultTable<WholeCalibration>& calibration_results() {
  static const ResultTable<WholeCalibration> kTable = [] {
    using Whole = WholeCalibration;
    ResultTable<Whole> table;
    table.list("files", file_results(), [](const Whole& all) { return all.input->files(); },
               {"that were read"});
    table.list("unused", unused_results(),
               [](const Whole& all) {
                 std::vector<UnusedRows> unused;
                 for (const auto& [reason, rows] : all.input->unused()) {
                   unused.emplace_back(reason, static_cast<std::int64_t>(rows));
                 }
                 return unused;
               },
               {"rows that were read and not used"});
    table.list("fits", fit_results(),
               [](const Whole& all) {
                 std::vector<Calibration> fits;
                 for (const Calibration* fit : all_fits(*all.result)) fits.push_back(*fit);
                 return fits;
               },
               {"one for each type of matmuls, timing of a library, and power limit"});
    table.list("libraries", library_results(),
               [](const Whole& all) { return all.result->libraries; }, {"as simulated"});
    table.add("remarks", [](const Whole& all) { return all.result->remarks; },
              {"what could not be fitted at all"});
    table.object("launch", launch_results(), [](const Whole& all) { return *all.launch; },
                 {"what a launch costs the host", "s", "with traces"});
    table.object("check", check_results(), [](const Whole& all) { return all.check; },
                 {"whether constants hold", "", "with --check"});
    return table;
  }();
  return kTable;
}

}  // namespace

std::string json_of(const CalibrationInput& input, const CalibrationResult& result,
                    const std::optional<LaunchCost>& launch, const CheckResult* check) {
  return calibration_results().json({&input, &result, &launch, check}) + '\n';
}

std::vector<CommandResult> calibrate_command_results() {
  return {{"", &calibration_results()}};
}

std::string provenance(const std::string& base, const CalibrationInput& input,
                       const std::vector<Calibration>& fits) {
  std::string text = fmt::format("# {} with constants fitted by stepsim {} calibrate.\n#\n# From\n",
                                 base, version());
  for (const InputSummary& file : input.files()) {
    text += fmt::format("#   {} ({}, {} of {} rows)\n", file.file, file.what, file.used, file.rows);
  }
  for (const Calibration& fit : fits) {
    if (fit.fitted() == 0) continue;
    text += fmt::format("#\n# {}: {} shapes\n", fit.of, fit.shapes);
    for (const CalibrationErrors& errors : fit.errors) {
      if (errors.before.rows == 0) continue;
      text += fmt::format("#   {}: {} rows, median {} (was {}), p90 {} (was {})\n", errors.of,
                          errors.before.rows, percent(errors.after.median),
                          percent(errors.before.median), percent(errors.after.p90),
                          percent(errors.before.p90));
    }
    std::string names;
    for (const CalibratedConstant& one : fit.constants) {
      if (one.why_kept.empty()) names += (names.empty() ? "" : ", ") + one.name;
    }
    text += "#   fitted: " + names + "\n";
  }
  return text + "\n";
}

}  // namespace stepsim
