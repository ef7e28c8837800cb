#include "topology/block.h"

namespace stepsim {
namespace {

struct Name {
  std::string_view operator()(const DgxSuperPodSpec&) const { return "dgx_superpod"; }
  std::string_view operator()(const TorusSpec&) const { return "torus"; }
  std::string_view operator()(const NvlinkDomainSpec&) const { return "nvlink_domain"; }
  std::string_view operator()(const PcieBoxSpec&) const { return "pcie_box"; }
  std::string_view operator()(const FatTreeSpec&) const { return "fat_tree"; }
  std::string_view operator()(const LeafSpineSpec&) const { return "leaf_spine"; }
  std::string_view operator()(const RailFabricSpec&) const { return "rail_fabric"; }
  std::string_view operator()(const DragonflySpec&) const { return "dragonfly"; }
  std::string_view operator()(const ExplicitGraphSpec&) const { return "explicit_graph"; }
  std::string_view operator()(const TwistedTorusSpec&) const { return "twisted_torus"; }
  std::string_view operator()(const TpuSliceSpec&) const { return "tpu_slice"; }
};

}  // namespace

std::string_view name_of(const BlockSpec& spec) {
  return std::visit(Name{}, spec);
}

std::vector<Problem> check(const BlockSpec& spec) {
  return under(name_of(spec), std::visit([](const auto& block) { return check(block); }, spec));
}

BuiltTopology build(const BlockSpec& spec) {
  return std::visit([](const auto& block) { return build(block); }, spec);
}

void fit(BlockSpec& spec, std::uint32_t gateways) {
  std::visit(
      [gateways](auto& block) {
        if constexpr (requires { fit(block, gateways); }) fit(block, gateways);
      },
      spec);
}

int rails_of(const BlockSpec& spec) {
  return std::visit(
      [](const auto& block) {
        if constexpr (requires { block.rails; }) return block.rails;
        return 1;
      },
      spec);
}

}  // namespace stepsim
