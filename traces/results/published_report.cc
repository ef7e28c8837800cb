#include "traces/results/published_report.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <functional>

#include "sim/base/quantity_text.h"
#include "sim/base/units.h"

namespace stepsim {
namespace {

// Returns "+3.2 %", green if it is within the range of the figure.
std::string difference_text(const PublishedComparison& one, const ReportText& text) {
  return text.paint(fmt::format("{:>+7.1f} %", 100 * (one.ratio() - 1)),
                    one.as_expected() ? Paint::kGood : Paint::kBad);
}

std::string remark_of(const PublishedComparison& one) {
  const PublishedFigure& figure = one.figure;
  std::string remark = figure.source;
  if (!figure.plan.empty()) remark += "; measured with " + figure.plan;
  if (!one.as_expected()) {
    remark += fmt::format("; expected {:+.0f} to {:+.0f} %", 100 * (figure.low - 1),
                          100 * (figure.high - 1));
  }
  return remark;
}

}  // namespace

std::string published_value_text(PublishedMetric metric, double value) {
  switch (metric) {
    case PublishedMetric::kStepTime:
      return to_text(duration_from_seconds(value));
    case PublishedMetric::kTokensPerSecond:
      return grouped(value);
    case PublishedMetric::kFlopsPerChip:
      return to_text(Throughput(value));
    case PublishedMetric::kModelFlopsUtilization:
    case PublishedMetric::kHardwareFlopsUtilization:
      return fmt::format("{:.1f} %", 100 * value);
    case PublishedMetric::kPeakMemory:
      return to_text(Bytes(static_cast<std::int64_t>(std::llround(value))));
    case PublishedMetric::kTimePerToken:
    case PublishedMetric::kTimeToFirstToken:
      return to_text(duration_from_seconds(value));
    case PublishedMetric::kOutputTokensPerChip:
      return grouped(value);
  }
  return "";
}

std::string_view published_label(PublishedMetric metric) {
  switch (metric) {
    case PublishedMetric::kStepTime:
      return "step time";
    case PublishedMetric::kTokensPerSecond:
      return "tokens/s";
    case PublishedMetric::kFlopsPerChip:
      return "model FLOPs of a chip";
    case PublishedMetric::kModelFlopsUtilization:
      return "MFU";
    case PublishedMetric::kHardwareFlopsUtilization:
      return "HFU";
    case PublishedMetric::kPeakMemory:
      return "peak memory";
    case PublishedMetric::kTimePerToken:
      return "time per output token";
    case PublishedMetric::kTimeToFirstToken:
      return "time to first token";
    case PublishedMetric::kOutputTokensPerChip:
      return "output tokens/s of a chip";
  }
  return "";
}

void add_published(ReportText& text, const std::vector<PublishedComparison>& comparisons) {
  for (const PublishedComparison& one : comparisons) {
    const PublishedMetric metric = one.figure.metric;
    text.line("  {:<{}}{:>14}  simulated {:>14}  {}", published_label(metric), kReportLabel,
              published_value_text(metric, one.figure.value),
              published_value_text(metric, one.simulated), difference_text(one, text));
    text.wrapped(4, remark_of(one));
    text.wrapped(4, one.figure.why);
  }
}

const ResultTable<PublishedComparison>& published_results() {
  static const ResultTable<PublishedComparison> kTable = [] {
    const auto figure = [](auto member) {
      return [member](const PublishedComparison& one) { return std::invoke(member, one.figure); };
    };
    const auto text = [](std::string PublishedFigure::*member) {
      return [member](const PublishedComparison& one) { return given(one.figure.*member); };
    };
    ResultTable<PublishedComparison> table;
    table.add("metric", [](const PublishedComparison& one) { return name_of(one.figure.metric); },
              {"what was published"});
    table.add("published", figure(&PublishedFigure::value), {"the published figure"});
    table.add("simulated", &PublishedComparison::simulated, {"the same of the simulation"});
    table.add("ratio", &PublishedComparison::ratio, {"simulated / published"});
    table.add("low", figure(&PublishedFigure::low), {"least expected ratio"});
    table.add("high", figure(&PublishedFigure::high), {"largest expected ratio"});
    table.add("as_expected", &PublishedComparison::as_expected,
              {"whether the ratio is within them"});
    table.add(
        "attention_flops",
        [](const PublishedComparison& one) {
          return counts_attention(one.figure.metric) ? std::optional(name_of(one.figure.attention))
                                                     : std::nullopt;
        },
        {"how the publication counts the FLOPs of attention", "", "of figures that count them"});
    table.add("source", text(&PublishedFigure::source), {"where it was published"});
    table.add("plan", text(&PublishedFigure::plan),
              {"plan of the measurement", "", "unless it is the experiment's"});
    table.add("why", text(&PublishedFigure::why),
              {"why the ratio may be beyond 0.9 to 1.1", "", "where it may"});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
