#include "topology/topology.h"

#include <utility>

namespace stepsim {
namespace {

std::vector<Problem> check_named(const ComposedSpec& spec) {
  return under("composed", check(spec));
}
std::vector<Problem> check_named(const BlockSpec& spec) {
  return check(spec);
}

BuiltTopology build_checked(const TopologySpec& spec) {
  return std::visit([](const auto& chosen) { return build(chosen); }, spec);
}

HopKind inside_of_one(const ComposedSpec& spec) {
  return inside_of(spec.domain);
}
HopKind inside_of_one(const BlockSpec& spec) {
  return inside_of(spec);
}

}  // namespace

HopKind inside_of(const TopologySpec& spec) {
  return std::visit([](const auto& chosen) { return inside_of_one(chosen); }, spec);
}

std::vector<Problem> check(const TopologySpec& spec) {
  return std::visit([](const auto& chosen) { return check_named(chosen); }, spec);
}

std::vector<Problem> check(const TopologySpec& spec, const Faults& faults) {
  std::vector<Problem> problems = check(spec);
  if (!problems.empty() || faults.links.empty()) return problems;
  return under("faults", check(faults, build_checked(spec)));
}

std::optional<BuiltTopology> build_if_valid(const TopologySpec& spec, const Faults& faults) {
  if (!check(spec).empty()) return std::nullopt;
  BuiltTopology built = build_checked(spec);
  if (!check(faults, built).empty()) return std::nullopt;
  return apply(faults, std::move(built));
}

BuiltTopology build_topology(const TopologySpec& spec, const Faults& faults) {
  throw_if_any(check(spec));
  BuiltTopology built = build_checked(spec);
  throw_if_any(under("faults", check(faults, built)));
  return apply(faults, std::move(built));
}

}  // namespace stepsim
