#include "traces/results/explain_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

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

// The names of amounts in seconds or in bytes.
struct AmountNames {
  std::string_view amount, predicted, simulated, unit;
};
constexpr AmountNames kSeconds{"amount_s", "predicted_s", "simulated_s", "s"};
constexpr AmountNames kBytes{"amount_bytes", "predicted_bytes", "simulated_bytes", "bytes"};

ResultTable<ExplainedCause> make_cause_results(const AmountNames& names) {
  ResultTable<ExplainedCause> table;
  table.add("text", &ExplainedCause::text, {"why"});
  table.add(names.amount, &ExplainedCause::amount,
            {"positive: the simulation is larger", names.unit});
  return table;
}

template <const AmountNames& names>
const ResultTable<ExplainedCause>& cause_results() {
  static const ResultTable<ExplainedCause> kTable = make_cause_results(names);
  return kTable;
}

// The members of a part and of traffic that say what was predicted and what came out.
template <class T>
void add_amounts(const AmountNames& names, ResultTable<T>& table) {
  table.add(names.predicted, &T::predicted, {"what the formula says", names.unit});
  table.add(names.simulated, &T::simulated, {"what the simulation says", names.unit});
}

template <const AmountNames& names>
const ResultTable<ExplainedPart>& part_results() {
  static const ResultTable<ExplainedPart> kTable = [] {
    ResultTable<ExplainedPart> table;
    table.add("name", &ExplainedPart::name, {"the part"});
    table.add("formula", &ExplainedPart::formula, {"ids in the formula table; empty: none"});
    table.add("text", &ExplainedPart::text, {"the formula with this run's numbers"});
    add_amounts(names, table);
    table.list("causes", cause_results<names>(), &ExplainedPart::causes,
               {"why they differ; their amounts add up to the difference"});
    return table;
  }();
  return kTable;
}

const ResultTable<ExplainedTraffic>& traffic_results() {
  static const ResultTable<ExplainedTraffic> kTable = [] {
    ResultTable<ExplainedTraffic> table;
    table.add("name", &ExplainedTraffic::name, {"of the communicator"});
    table.add("axis", &ExplainedTraffic::axis, {"its axis"});
    table.add("text", &ExplainedTraffic::text, {"what it sends"});
    add_amounts(kSeconds, table);
    table.add("waiting_s", &ExplainedTraffic::waiting, {"posted, but waiting for peers", "s"});
    table.list("causes", cause_results<kSeconds>(), &ExplainedTraffic::causes, {"why they differ"});
    return table;
  }();
  return kTable;
}

const ResultTable<ExplainedThreshold>& threshold_results() {
  static const ResultTable<ExplainedThreshold> kTable = [] {
    ResultTable<ExplainedThreshold> table;
    table.add("formula", &ExplainedThreshold::formula, {"id in the formula table"});
    table.add("text", &ExplainedThreshold::text, {"the limit, and where this run is"});
    table.add("limit", &ExplainedThreshold::limit, {"its value"});
    table.add("actual", &ExplainedThreshold::actual, {"the run's value"});
    table.add("met", &ExplainedThreshold::met, {"whether it holds"});
    return table;
  }();
  return kTable;
}

}  // namespace

std::string explain_report(const Explanation& explanation, bool color) {
  return ExplainReport(explanation, color).write();
}

const ResultTable<Explanation>& explanation_results() {
  static const ResultTable<Explanation> kTable = [] {
    ResultTable<Explanation> table;
    table.object("step", part_results<kSeconds>(), &Explanation::step, {"the sum of the parts"});
    table.list("parts", part_results<kSeconds>(), &Explanation::parts, {"parts of the step"});
    table.list("traffic", traffic_results(), &Explanation::traffic,
               {"all collectives of a communicator in a step, for a mean rank"});
    table.list("limits", threshold_results(), &Explanation::limits, {"limits of the books"});
    table.list("memory", part_results<kBytes>(), &Explanation::memory,
               {"by category, of the rank that needs most"});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
