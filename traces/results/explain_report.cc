#include "traces/results/explain_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "sim/base/json_text.h"
#include "sim/base/quantity_text.h"
#include "traces/results/report_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kTextWidth = kReportWidth - 6;

// The text leaves out causes below this share of the largest cause of their part. The JSON has all.
constexpr double kShown = 1e-3;

enum class AmountUnit { kSeconds, kBytes };

std::string amount_text(double amount, AmountUnit unit) {
  const double size = std::abs(amount);
  const std::string text = unit == AmountUnit::kSeconds
                               ? to_text(duration_from_seconds(size))
                               : to_text(Bytes(static_cast<std::int64_t>(std::llround(size))));
  return amount < 0 ? "-" + text : text;
}

std::string difference_text(double predicted, double simulated) {
  if (predicted <= 0) return "";
  return fmt::format("{:+.1f} %", 100 * (simulated / predicted - 1));
}

class ExplainReport : private ReportText {
 public:
  ExplainReport(const Explanation& explanation, bool color)
      : ReportText(color), explanation_(explanation) {}

  std::string write() {
    section("Explained", "formulas of the books beside the run; see stepsim formula ID");
    columns();
    for (const ExplainedPart& part : explanation_.parts) part_rows(part, AmountUnit::kSeconds);
    row("step", "", explanation_.step.predicted, explanation_.step.simulated, AmountUnit::kSeconds);
    section("Traffic", "V / W beside the time in which data moved, on a mean rank");
    columns();
    for (const ExplainedTraffic& traffic : explanation_.traffic) {
      row(traffic.name, "", traffic.predicted, traffic.simulated, AmountUnit::kSeconds);
      paragraph(traffic.text);
      if (traffic.waiting > 0) paragraph("waits for peers: " + seconds(traffic.waiting));
      causes(traffic.causes, AmountUnit::kSeconds);
    }
    section("Limits of the books");
    for (const ExplainedThreshold& limit : explanation_.limits) {
      line("  {}  {} ({})",
           limit.met ? paint("holds ", Paint::kGood) : paint("broken", Paint::kBad), limit.text,
           limit.formula);
    }
    section("Memory explained", "the rank that needs most, at its peak");
    columns();
    for (const ExplainedPart& part : explanation_.memory) part_rows(part, AmountUnit::kBytes);
    return text();
  }

 private:
  static std::string seconds(double amount) { return amount_text(amount, AmountUnit::kSeconds); }

  void columns() {
    line("  {:<{}}{:<14}{:>12}  {:>12}  {:>9}", "", kReportLabel, "formula", "predicted",
         "simulated", "");
  }

  void row(std::string_view name, std::string_view formula, double predicted, double simulated,
           AmountUnit unit) {
    line("  {:<{}}{:<14}{:>12}  {:>12}  {:>9}", name, kReportLabel, formula,
         amount_text(predicted, unit), amount_text(simulated, unit),
         difference_text(predicted, simulated));
  }

  void part_rows(const ExplainedPart& part, AmountUnit unit) {
    row(part.name, part.formula, part.predicted, part.simulated, unit);
    if (!part.text.empty()) paragraph(part.text);
    causes(part.causes, unit);
  }

  void causes(const std::vector<ExplainedCause>& causes, AmountUnit unit) {
    double largest = 0;
    for (const ExplainedCause& cause : causes) {
      largest = std::max(largest, std::abs(cause.amount));
    }
    for (const ExplainedCause& cause : causes) {
      if (std::abs(cause.amount) < kShown * largest) continue;
      const std::string sign = cause.amount > 0 ? "+" : "";
      line("    {:>12}  {}", sign + amount_text(cause.amount, unit), cause.text);
    }
  }

  // Adds a paragraph, with line breaks at spaces.
  void paragraph(std::string_view text) {
    while (!text.empty()) {
      std::size_t length = text.size();
      if (length > kTextWidth) {
        length = text.rfind(' ', kTextWidth);
        if (length == std::string_view::npos) length = kTextWidth;
      }
      line("    {}", paint(text.substr(0, length), Paint::kDim));
      text.remove_prefix(std::min(text.size(), length + 1));
    }
  }

  const Explanation& explanation_;
};

std::string causes_json(const std::vector<ExplainedCause>& causes, std::string_view suffix) {
  std::string text = "[";
  for (const ExplainedCause& cause : causes) {
    text += fmt::format("{}{{\"text\": \"{}\", \"amount_{}\": {}}}", text.size() == 1 ? "" : ", ",
                        json_escaped(cause.text), suffix, json_number(cause.amount));
  }
  return text + "]";
}

std::string part_json(const ExplainedPart& part, std::string_view suffix) {
  return fmt::format(
      "{{\"name\": \"{}\", \"formula\": \"{}\", \"text\": \"{}\", \"predicted_{}\": {}, "
      "\"simulated_{}\": {}, \"causes\": {}}}",
      json_escaped(part.name), json_escaped(part.formula), json_escaped(part.text), suffix,
      json_number(part.predicted), suffix, json_number(part.simulated),
      causes_json(part.causes, suffix));
}

}  // namespace

std::string explain_report(const Explanation& explanation, bool color) {
  return ExplainReport(explanation, color).write();
}

std::string explanation_json(const Explanation& explanation) {
  std::vector<std::string> parts;
  for (const ExplainedPart& part : explanation.parts) parts.push_back(part_json(part, "s"));
  std::vector<std::string> traffic;
  for (const ExplainedTraffic& one : explanation.traffic) {
    traffic.push_back(fmt::format(
        "{{\"name\": \"{}\", \"axis\": \"{}\", \"text\": \"{}\", \"predicted_s\": {}, "
        "\"simulated_s\": {}, \"waiting_s\": {}, \"causes\": {}}}",
        json_escaped(one.name), one.axis, json_escaped(one.text), json_number(one.predicted),
        json_number(one.simulated), json_number(one.waiting), causes_json(one.causes, "s")));
  }
  std::vector<std::string> limits;
  for (const ExplainedThreshold& limit : explanation.limits) {
    limits.push_back(
        fmt::format("{{\"formula\": \"{}\", \"text\": \"{}\", \"limit\": {}, \"actual\": {}, "
                    "\"met\": {}}}",
                    limit.formula, json_escaped(limit.text), json_number(limit.limit),
                    json_number(limit.actual), limit.met));
  }
  std::vector<std::string> memory;
  for (const ExplainedPart& part : explanation.memory) memory.push_back(part_json(part, "bytes"));
  return fmt::format(
      "{{\n    \"step\": {},\n    \"parts\": {},\n    \"traffic\": {},\n    \"limits\": {},\n"
      "    \"memory\": {}\n  }}",
      part_json(explanation.step, "s"), json_lines(parts, 6), json_lines(traffic, 6),
      json_lines(limits, 6), json_lines(memory, 6));
}

}  // namespace stepsim
