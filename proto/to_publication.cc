#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "proto/field_reader.h"
#include "proto/to_spec.h"

namespace stepsim {
namespace {

// In SI base units; nothing if the field is absent or can't be read.
std::optional<double> read_value(const FieldReader& fields, PublishedMetric metric) {
  const std::string field(name_of(metric));
  if (!fields.has(field.c_str())) return std::nullopt;
  switch (metric) {
    case PublishedMetric::kStepTime: {
      Duration time{};
      fields.read(field.c_str(), time);
      return to_seconds(time);
    }
    case PublishedMetric::kFlopsPerChip: {
      Throughput rate{};
      fields.read(field.c_str(), rate);
      return rate.value();
    }
    case PublishedMetric::kPeakMemory: {
      Bytes size{};
      fields.read(field.c_str(), size);
      return static_cast<double>(size.value());
    }
    case PublishedMetric::kTokensPerSecond:
    case PublishedMetric::kModelFlopsUtilization:
    case PublishedMetric::kHardwareFlopsUtilization: {
      double value = 0;
      fields.read(field.c_str(), value);
      return value;
    }
  }
  return std::nullopt;
}

std::string metric_names() {
  std::string names;
  for (std::size_t i = 0; i < kPublishedMetrics; ++i) {
    if (i > 0) names += ", ";
    names += name_of(static_cast<PublishedMetric>(i));
  }
  return names;
}

// Exactly one of the fields that are named like a metric.
void read_metric(const FieldReader& fields, PublishedFigure& figure) {
  std::size_t given = 0;
  for (std::size_t i = 0; i < kPublishedMetrics; ++i) {
    const auto metric = static_cast<PublishedMetric>(i);
    const std::optional<double> value = read_value(fields, metric);
    if (!value) continue;
    if (++given > 1) {
      fields.add(std::string(name_of(metric)).c_str(),
                 fmt::format("is given beside {}; a figure each", name_of(figure.metric)));
      continue;
    }
    figure.metric = metric;
    figure.value = *value;
  }
  if (given == 0) fields.add("step_time", "or another figure must be given: " + metric_names());
}

PublishedFigure to_figure(const file::Published& message, const std::string& prefix,
                          ProblemList& problems) {
  PublishedFigure figure;
  const FieldReader fields(message, prefix, problems);
  read_metric(fields, figure);
  fields.read("attention_flops", figure.attention,
              {{"causal", AttentionFlops::kCausal}, {"full", AttentionFlops::kFull}});
  if (fields.has("attention_flops") && !counts_attention(figure.metric)) {
    fields.add("attention_flops", fmt::format("says nothing about {}", name_of(figure.metric)));
  }
  fields.read("low", figure.low);
  fields.read("high", figure.high);
  fields.read("source", figure.source);
  fields.read("plan", figure.plan);
  fields.read("why", figure.why);
  return figure;
}

}  // namespace

Publication to_publication(const file::Experiment& message, ProblemList& problems) {
  Publication publication;
  for (int i = 0; i < message.published_size(); ++i) {
    publication.figures.push_back(
        to_figure(message.published(i), fmt::format("published[{}].", i), problems));
  }
  publication.none = message.not_published();
  problems.add(check(publication));
  return publication;
}

}  // namespace stepsim
