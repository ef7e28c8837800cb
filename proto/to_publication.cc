#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "experiment/published_fields.h"
#include "proto/messages/read_fields.h"
#include "proto/to_spec.h"

namespace stepsim {
namespace {

std::string metric_names() {
  std::string names;
  for (std::size_t i = 0; i < kPublishedMetrics; ++i) {
    if (i > 0) names += ", ";
    names += name_of(static_cast<PublishedMetric>(i));
  }
  return names;
}

// Returns the metrics that the message has a field for, in the order of the metrics.
std::vector<std::string> metrics_of(const file::Published& message) {
  std::vector<std::string> given;
  for (std::size_t i = 0; i < kPublishedMetrics; ++i) {
    std::string name(name_of(static_cast<PublishedMetric>(i)));
    const auto* field = file::Published::descriptor()->FindFieldByName(name);
    if (message.GetReflection()->HasField(message, field)) given.push_back(std::move(name));
  }
  return given;
}

void check_metric(const file::Published& message, const PublishedFigure& figure,
                  const std::string& prefix, ProblemList& problems) {
  const std::vector<std::string> given = metrics_of(message);
  if (given.empty()) {
    problems.add(prefix + "step_time", "or another figure must be given: " + metric_names());
  }
  for (std::size_t i = 1; i < given.size(); ++i) {
    problems.add(prefix + given[i], fmt::format("is given beside {}; a figure each", given[0]));
  }
  if (message.has_attention_flops() && !counts_attention(figure.metric)) {
    problems.add(prefix + "attention_flops",
                 fmt::format("says nothing about {}", name_of(figure.metric)));
  }
}

}  // namespace

Publication to_publication(const file::Experiment& message, ProblemList& problems) {
  Publication publication;
  read_fields(message, publication_fields(), publication, "", problems);
  for (int i = 0; i < message.published_size(); ++i) {
    check_metric(message.published(i), publication.figures[static_cast<std::size_t>(i)],
                 fmt::format("published[{}].", i), problems);
  }
  problems.add(check(publication));
  return publication;
}

}  // namespace stepsim
