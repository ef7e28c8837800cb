#include "experiment/published.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

namespace stepsim {
namespace {

constexpr std::array<std::string_view, kPublishedMetrics> kMetricNames = {
    "step_time",
    "tokens_per_s",
    "flops_per_chip",
    "model_flops_utilization",
    "hardware_flops_utilization",
    "peak_memory",
    "tpot",
    "ttft",
    "output_tokens_per_s_per_chip"};
constexpr double kUsualLow = 0.9;
constexpr double kUsualHigh = 1.1;

bool is_utilization(PublishedMetric metric) {
  return metric == PublishedMetric::kModelFlopsUtilization ||
         metric == PublishedMetric::kHardwareFlopsUtilization;
}

void check_figure(const PublishedFigure& figure, const std::string& prefix,
                  std::vector<Problem>& problems) {
  const auto add = [&](std::string_view field, std::string message) {
    problems.push_back({prefix + std::string(field), std::move(message)});
  };
  if (!std::isfinite(figure.value) || figure.value <= 0) {
    add(name_of(figure.metric), fmt::format("must be above 0, is {}", figure.value));
  } else if (is_utilization(figure.metric) && figure.value > 1) {
    add(name_of(figure.metric),
        fmt::format("must be at most 1, is {}: 41 % is 0.41", figure.value));
  }
  if (!(figure.low > 0 && figure.low < figure.high && std::isfinite(figure.high))) {
    add("low", fmt::format("must be above 0 and below high ({}), is {}", figure.high, figure.low));
  } else if (figure.why.empty() && (figure.low < kUsualLow || figure.high > kUsualHigh)) {
    add("why", fmt::format("must be given for a range beyond {} to {}, is {} to {}", kUsualLow,
                           kUsualHigh, figure.low, figure.high));
  }
  if (figure.source.empty()) add("source", "must be given, as in \"arXiv 2407.21783, table 4\"");
}

}  // namespace

std::string_view name_of(PublishedMetric metric) {
  return kMetricNames[static_cast<std::size_t>(metric)];
}

bool counts_attention(PublishedMetric metric) {
  return metric == PublishedMetric::kFlopsPerChip ||
         metric == PublishedMetric::kModelFlopsUtilization;
}

bool is_of_serving(PublishedMetric metric) {
  return metric == PublishedMetric::kTimePerToken || metric == PublishedMetric::kTimeToFirstToken ||
         metric == PublishedMetric::kOutputTokensPerChip;
}

std::vector<Problem> check(const Publication& publication) {
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < publication.figures.size(); ++i) {
    check_figure(publication.figures[i], fmt::format("published[{}].", i), problems);
  }
  if (!publication.figures.empty() && !publication.none.empty()) {
    problems.push_back({"not_published", "must not be given beside published figures"});
  }
  return problems;
}

}  // namespace stepsim
