#include "sim/hardware/chip_route.h"

namespace stepsim {

Duration route_of(const Cluster& cluster, std::uint32_t from_chip, std::uint32_t to_chip,
                  std::vector<LinkId>& links) {
  const std::size_t before = links.size();
  const std::vector<NodeId>& chips = cluster.places.chips;
  cluster.router->route(chips[from_chip], chips[to_chip], 0, links);
  Duration latency{};
  for (std::size_t i = before; i < links.size(); ++i) {
    latency += cluster.fabric.link(links[i]).latency;
  }
  return latency;
}

}  // namespace stepsim
