#include "topology/topology.h"

#include <string_view>

namespace stepsim {
namespace {

std::string_view name_of(const DgxSuperPodSpec&) {
  return "dgx_superpod";
}
std::string_view name_of(const TorusSpec&) {
  return "torus";
}

}  // namespace

std::vector<Problem> check(const TopologySpec& spec) {
  return std::visit([](const auto& chosen) { return under(name_of(chosen), check(chosen)); }, spec);
}

BuiltTopology build_topology(const TopologySpec& spec) {
  throw_if_any(check(spec));
  return std::visit([](const auto& chosen) { return build(chosen); }, spec);
}

}  // namespace stepsim
