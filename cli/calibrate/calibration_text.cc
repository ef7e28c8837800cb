#include "cli/calibrate/calibration_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cli/version.h"
#include "sim/base/json_text.h"

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

std::string json_of(const std::vector<CalibrationErrors>& errors) {
  std::string text = "[";
  for (const CalibrationErrors& line : errors) {
    text += fmt::format(
        "{}\n        {{\"of\": \"{}\", \"rows\": {}, \"median_before\": {:.6f}, "
        "\"median_after\": {:.6f}, \"p90_before\": {:.6f}, \"p90_after\": {:.6f}}}",
        text.back() == '[' ? "" : ",", json_escaped(line.of), line.before.rows, line.before.median,
        line.after.median, line.before.p90, line.after.p90);
  }
  return text + "]";
}

std::string json_of(const std::vector<CalibratedConstant>& constants) {
  std::string text = "[";
  for (const CalibratedConstant& one : constants) {
    text += fmt::format(
        "{}\n        {{\"name\": \"{}\", \"unit\": \"{}\", \"before\": {}, \"after\": {}, "
        "\"fitted\": {}, \"why_kept\": \"{}\"}}",
        text.back() == '[' ? "" : ",", one.name, one.unit,
        one.was_set ? json_number(one.before) : "null",
        one.was_set || one.why_kept.empty() ? json_number(one.after) : "null", one.why_kept.empty(),
        json_escaped(one.why_kept));
  }
  return text + "]";
}

std::string json_of(const Calibration& fit) {
  return fmt::format(
      "{{\"of\": \"{}\", \"shapes\": {},\n      \"errors\": {},\n      \"constants\": {}}}",
      json_escaped(fit.of), fit.shapes, json_of(fit.errors), json_of(fit.constants));
}

template <typename List, typename JsonOf>
std::string member_json(const List& list, const JsonOf& json_of_element) {
  return json_lines(json_values(list, json_of_element), 4);
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

std::string json_of(const CalibrationInput& input, const CalibrationResult& result,
                    const std::optional<LaunchCost>& launch, const CheckResult* check) {
  std::string text = fmt::format(
      "{{\n  \"files\": {},\n  \"unused\": {},\n  \"fits\": {},\n  \"libraries\": {},\n  "
      "\"remarks\": {}",
      member_json(input.files(),
                  [](const InputSummary& file) {
                    return fmt::format(
                        "{{\"file\": \"{}\", \"kind\": \"{}\", \"rows\": {}, \"used\": {}}}",
                        json_escaped(file.file), file.what, file.rows, file.used);
                  }),
      member_json(input.unused(),
                  [](const auto& unused) {
                    return fmt::format("{{\"reason\": \"{}\", \"rows\": {}}}",
                                       json_escaped(unused.first), unused.second);
                  }),
      member_json(all_fits(result), [](const Calibration* fit) { return json_of(*fit); }),
      member_json(result.libraries,
                  [](const CalibratedLibrary& library) {
                    return fmt::format("{{\"name\": \"{}\", \"errors\": {}}}",
                                       json_escaped(library.name),
                                       json_of(library.calibration.errors));
                  }),
      member_json(result.remarks, json_quoted));
  if (launch) {
    text += fmt::format(
        ",\n  \"launch\": {{\"launches\": {}, \"quarter_s\": {:.9f}, "
        "\"held_out_quarter_s\": {:.9f}, \"median_s\": {:.9f}}}",
        launch->launches, launch->seconds, launch->held_out, launch->median);
  }
  if (check != nullptr) {
    text +=
        fmt::format(",\n  \"check\": {{\"allowed\": {:.6f}, \"holds\": {}, \"worse\": {}}}",
                    check->allowed, check->worse.empty(), member_json(check->worse, json_quoted));
  }
  return text + "\n}\n";
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
