#include "sim/run/make_network.h"

#include <stdexcept>

#include "sim/network/flow_network.h"
#include "sim/network/latency_bandwidth_network.h"
#include "sim/network/packets/packet_network.h"
#include "sim/network/transport/transport_network.h"

namespace stepsim {
namespace {

std::unique_ptr<Network> make_packets(const Cluster& cluster, const SimulationOptions& options) {
  if (options.granularity != Granularity::kStepped) {
    throw std::logic_error("packets need stepped collectives");
  }
  if (options.transport) {
    return make_transport_network(cluster.fabric, *options.transport, cluster.router.get());
  }
  PacketOptions packets = options.packets;
  if (packets.spraying && packets.spraying->router == nullptr) {
    packets.spraying->router = cluster.router.get();
  }
  return make_packet_network(cluster.fabric, packets);
}

}  // namespace

std::unique_ptr<Network> make_network(const Cluster& cluster, const Fabric& fabric,
                                      const SimulationOptions& options) {
  switch (options.fidelity) {
    case Fidelity::kFlow:
      return make_flow_network(fabric);
    case Fidelity::kPacket:
      return make_packets(cluster, options);
    case Fidelity::kLatencyBandwidth:
      break;
  }
  return make_latency_bandwidth_network(fabric);
}

}  // namespace stepsim
