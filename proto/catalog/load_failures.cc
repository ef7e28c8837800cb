#include "proto/catalog/load_failures.h"

#include "proto/catalog/catalog.h"
#include "proto/failures.pb.h"
#include "proto/messages/read_fields.h"

namespace stepsim {
namespace {

std::optional<SourceText> failures_source(const std::string& name, ProblemList& problems) {
  if (looks_like_file(name)) return read_source(name, "--failures", problems);
  CatalogAnswer answer = find(CatalogKind::kFailures, name);
  if (!answer.found) {
    problems.add("--failures", answer.problem + "; or give a file ending in .textproto or .json");
  }
  return std::move(answer.found);
}

}  // namespace

FailureTable load_failures(const std::string& name) {
  ProblemList problems;
  FailureTable table;
  const std::optional<SourceText> source = failures_source(name, problems);
  file::FailureTable message;
  if (source && read_message(*source, "", message, problems)) {
    read_fields(message, failure_fields(), table, "", problems);
    problems.add(check(table));
  }
  throw_if_any(problems.all());
  return table;
}

}  // namespace stepsim
