#include "proto/load_publication.h"

#include <optional>

#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_reference.h"
#include "proto/to_spec.h"

namespace stepsim {
namespace {

std::optional<SourceText> read_experiment(const std::string& experiment, ProblemList& problems) {
  if (looks_like_file(experiment)) return read_source(experiment, "EXPERIMENT", problems);
  CatalogAnswer answer = find(CatalogKind::kExperiment, experiment);
  if (!answer.found) problems.add("EXPERIMENT", answer.problem);
  return answer.found;
}

}  // namespace

Publication load_publication(const std::string& experiment) {
  ProblemList problems;
  Publication publication;
  file::Experiment message;
  const std::optional<SourceText> source = read_experiment(experiment, problems);
  if (source && read_message(*source, "", message, problems)) {
    publication = to_publication(message, problems);
  }
  throw_if_any(problems.all());
  return publication;
}

}  // namespace stepsim
