#include "traces/results/published_report.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "sim/base/json_text.h"
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

std::string figure_member(std::string_view key, double value) {
  return fmt::format(", \"{}\": {}", key, value);
}

std::string figure_member(std::string_view key, std::string_view value) {
  return value.empty() ? "" : fmt::format(", \"{}\": \"{}\"", key, json_escaped(value));
}

std::string comparison_object(const PublishedComparison& one) {
  const PublishedFigure& figure = one.figure;
  std::string text = fmt::format("{{\"metric\": \"{}\"", name_of(figure.metric));
  text += figure_member("published", figure.value) + figure_member("simulated", one.simulated) +
          figure_member("ratio", one.ratio()) + figure_member("low", figure.low) +
          figure_member("high", figure.high);
  text += fmt::format(", \"as_expected\": {}", one.as_expected());
  if (counts_attention(figure.metric)) {
    text += figure_member("attention_flops", name_of(figure.attention));
  }
  text += figure_member("source", figure.source) + figure_member("plan", figure.plan) +
          figure_member("why", figure.why);
  return text + "}";
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

std::string published_json(const std::vector<PublishedComparison>& comparisons) {
  std::string text;
  for (const PublishedComparison& one : comparisons) {
    text += (text.empty() ? "\n    " : ",\n    ") + comparison_object(one);
  }
  return text.empty() ? "[]" : '[' + text + "\n  ]";
}

}  // namespace stepsim
