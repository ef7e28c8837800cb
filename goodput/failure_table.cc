#include "goodput/failure_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace stepsim {
namespace {

template <class Enumeration, std::size_t N>
std::string_view name_in(const std::array<std::string_view, N>& names, Enumeration value) {
  return names[static_cast<std::size_t>(value)];
}

double chips_of(FailureUnit unit, std::int64_t node, std::int64_t leaf, std::int64_t pod) {
  switch (unit) {
    case FailureUnit::kChip:
      return 1;
    case FailureUnit::kNode:
      return static_cast<double>(node);
    case FailureUnit::kLeaf:
      return static_cast<double>(leaf);
    case FailureUnit::kPod:
    case FailureUnit::kJob:
      return static_cast<double>(pod);
  }
  return 1;
}

void check_class(const FailureClass& failure, const FailureTable& table, const std::string& prefix,
                 std::vector<Problem>& problems) {
  if (failure.count.has_value() == failure.rate.has_value()) {
    problems.push_back({prefix + (failure.count ? "count" : "rate"),
                        failure.count ? "must not stand beside rate"
                                      : "or count must be given: how often it fails"});
  }
  if (failure.count && (table.observed.days == 0 || table.observed.chips == 0)) {
    problems.push_back({prefix + "count", "needs observed { days: chips: } of the table"});
  }
  const bool loses = failure.loses != FailureScope::kNothing;
  if (failure.effect == FailureEffect::kSlow && !loses) {
    problems.push_back({prefix + "loses", "must be node, leaf or pod: a slow node is replaced"});
  }
  if (!loses && failure.repair != Duration()) {
    problems.push_back({prefix + "repair", "must be left out where nothing leaves the job"});
  }
}

}  // namespace

std::string_view name_of(FailureUnit unit) {
  return name_in(std::array<std::string_view, kFailureUnits>{"chip", "node", "leaf", "pod", "job"},
                 unit);
}
std::string_view name_of(FailureScope scope) {
  return name_in(std::array<std::string_view, kFailureScopes>{"nothing", "node", "leaf", "pod"},
                 scope);
}
std::string_view name_of(FailureEffect effect) {
  return name_in(std::array<std::string_view, kFailureEffects>{"stop", "slow", "silent"}, effect);
}
std::string_view name_of(FailureTimes times) {
  return name_in(std::array<std::string_view, kFailureTimes>{"exponential", "weibull", "lemons"},
                 times);
}
std::string_view name_of(CheckpointPlace place) {
  return name_in(std::array<std::string_view, kCheckpointPlaces>{"host", "peer", "storage"}, place);
}

bool CheckpointPolicy::has(CheckpointPlace place) const {
  return std::find(to.begin(), to.end(), place) != to.end();
}

// A count is of all units of the observation. The job is one unit.
double failures_per_day(const FailureClass& failure, const Observation& observed,
                        std::int64_t chips_per_leaf, std::int64_t chips_per_pod) {
  if (failure.rate) return *failure.rate / 1000;
  const auto chips = static_cast<double>(observed.chips);
  const double units =
      failure.per == FailureUnit::kJob
          ? 1
          : chips / chips_of(failure.per, observed.chips_per_node, chips_per_leaf, chips_per_pod);
  return *failure.count / (observed.days * units);
}

std::vector<Problem> check(const FailureTable& table) {
  std::vector<Problem> problems;
  std::set<std::string> names;
  for (std::size_t i = 0; i < table.classes.size(); ++i) {
    const std::string prefix = fmt::format("class[{}].", i);
    check_class(table.classes[i], table, prefix, problems);
    if (!names.insert(table.classes[i].name).second) {
      problems.push_back({prefix + "name", "is the name of an earlier class"});
    }
  }
  if (table.classes.empty()) problems.push_back({"class", "must be given at least once"});
  return problems;
}

}  // namespace stepsim
