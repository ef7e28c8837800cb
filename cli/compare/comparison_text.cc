#include "cli/compare/comparison_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/compare/comparison_results.h"
#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"
#include "traces/results/report_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kCell = 14;
constexpr std::size_t kListedInputs = 40;

std::string value_text(double value, LineUnit unit) {
  switch (unit) {
    case LineUnit::kSeconds:
      return fmt::format("{:.4f} s", value * 1e-12);
    case LineUnit::kBytes:
      return fmt::format("{:.2f} GB", value * 1e-9);
    case LineUnit::kShare:
      return fmt::format("{:.2f} %", 100 * value);
    case LineUnit::kNumber:
      break;
  }
  return std::abs(value) < 1e7 ? fmt::format("{:.7g}", value) : fmt::format("{:.4g}", value);
}

std::string change_text(const ComparedLine& line, std::size_t run) {
  const auto change = change_of(line, run);
  if (!change) return "-";
  if (*change == 0) return "=";
  const std::string sign = *change > 0 ? "+" : "";
  if (line.unit == LineUnit::kShare) return fmt::format("{:+.2f} points", 100 * *change);
  if (line.values[0].value_or(0) == 0) {
    return sign + value_text(*change, line.unit);
  }
  return fmt::format("{:+.2f} %", 100 * *change / *line.values[0]);
}

void add_inputs(const RunComparison& comparison, ReportText& text) {
  text.section("Inputs", comparison.inputs.empty() ? "are the same" : "");
  for (std::size_t i = 0; i < std::min(kListedInputs, comparison.inputs.size()); ++i) {
    const InputDifference& input = comparison.inputs[i];
    std::string values;
    for (const auto& value : input.values) {
      values += (values.empty() ? "" : "  |  ") + shortened(value.value_or("-"), 24);
    }
    text.line("  {:<38}  {}", input.path, values);
  }
  if (comparison.inputs.size() > kListedInputs) {
    text.line("  and {} more: --json lists all", comparison.inputs.size() - kListedInputs);
  }
}

void add_lines(const std::vector<ComparedRun>& runs, const RunComparison& comparison,
               ReportText& text) {
  std::string section;
  for (const ComparedLine& line : comparison.lines) {
    const bool is_nothing =
        std::ranges::all_of(line.values, [](const auto& value) { return value.value_or(0) == 0; });
    if (is_nothing) continue;
    if (line.section != section) {
      section = line.section;
      std::string title = section;
      title[0] = static_cast<char>(title[0] - 'a' + 'A');
      text.section(title);
    }
    std::string row = fmt::format("  {:<{}}", shortened(line.name, 28), 28);
    for (std::size_t run = 0; run < runs.size(); ++run) {
      const auto& value = line.values[run];
      row += fmt::format("{:>{}}", value ? value_text(*value, line.unit) : "-", kCell);
      if (run > 0) row += fmt::format("{:>{}}", change_text(line, run), kCell);
    }
    text.line("{}", row);
  }
}

void add_explanation(const ComparedRun& first, const ComparedRun& run,
                     const RunDifference& difference, ReportText& text) {
  text.section("What makes the difference",
               shortened(run.name, 30) + " - " + shortened(first.name, 30));
  const auto line = [&](const std::string& name, std::int64_t ps) {
    const std::string share =
        difference.step_ps == 0
            ? ""
            : fmt::format("{:>9.1f} %",
                          100 * static_cast<double>(ps) / static_cast<double>(difference.step_ps));
    text.line("  {:<28}{:>+{}.6f} s{}", name, static_cast<double>(ps) * 1e-12, kCell, share);
  };
  for (const ExplainedDifference& part : difference.parts) line(part.part, part.picoseconds);
  line("step", difference.step_ps);
  if (difference.causes.empty()) return;
  text.section("Behind it", "named by the runs; what waits for them spreads over all parts above");
  for (const NamedCause& cause : difference.causes) text.wrapped(2, cause.text);
}

}  // namespace

std::string comparison_report_of(const std::vector<ComparedRun>& runs,
                                 const RunComparison& comparison, bool color) {
  ReportText text(color);
  char letter = 'A';
  for (const ComparedRun& run : runs) {
    text.line("{}  {} ({})", letter, run.name, run.source);
    letter = letter == 'Z' ? 'a' : static_cast<char>(letter + 1);
  }
  add_inputs(comparison, text);
  add_lines(runs, comparison, text);
  for (std::size_t run = 1; run < runs.size(); ++run) {
    add_explanation(runs[0], runs[run], comparison.differences[run - 1], text);
  }
  return text.text();
}

}  // namespace stepsim
