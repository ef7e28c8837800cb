#include "sim/base/error.h"

#include <cassert>
#include <utility>

namespace stepsim {
namespace {

std::string describe(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    text += problem.field + ": " + problem.message + "\n";
  }
  return text;
}

}  // namespace

ConfigError::ConfigError(std::vector<Problem> problems)
    : std::runtime_error(describe(problems)), problems_(std::move(problems)) {
  assert(!problems_.empty());
}

std::vector<Problem> under(std::string_view prefix, std::vector<Problem> problems) {
  for (Problem& problem : problems) {
    problem.field = std::string(prefix) + (problem.field.empty() ? "" : ".") + problem.field;
  }
  return problems;
}

void throw_if_any(std::vector<Problem> problems) {
  if (!problems.empty()) {
    throw ConfigError(std::move(problems));
  }
}

}  // namespace stepsim
