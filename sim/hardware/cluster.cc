#include "sim/hardware/cluster.h"

namespace stepsim {

std::vector<std::optional<LinkId>> add_adders(Bandwidth operands, Fabric& fabric) {
  std::vector<std::optional<LinkId>> adders(fabric.nodes().size());
  for (std::uint32_t node = 0; node < adders.size(); ++node) {
    if (fabric.node(NodeId(node)).kind != NodeKind::kSwitch) continue;
    adders[node] = fabric.connect_one_way(NodeId(node), NodeId(node), operands, {});
  }
  return adders;
}

}  // namespace stepsim
