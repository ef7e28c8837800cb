#include "cli/network/packet_run.h"

#include <fmt/format.h>

#include <string>

#include "cli/session/standard_output.h"
#include "sim/base/error.h"
#include "sim/run/collectives/packet_estimate.h"

namespace stepsim {
namespace {

constexpr std::uint64_t kAskAbove = 1'000'000'000;  // packet-hops

std::string rough_time(double seconds) {
  if (seconds < 1) return "less than a second";
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{:.0f} minutes", seconds / 60);
  return fmt::format("{:.1f} hours", seconds / 3600);
}

}  // namespace

void announce_packets(const OpGraph& graph, const Cluster& cluster,
                      const SimulationOptions& options, bool yes) {
  if (options.fidelity != Fidelity::kPacket) return;
  PacketOptions packets = options.packets;
  if (options.transport) packets.packet_bytes = options.transport->payload;
  PacketEstimate estimate = estimate_packets(graph, cluster, packets, options.steps);
  if (options.transport) estimate.packet_hops *= 2;  // each is answered
  const std::string size =
      fmt::format("about {:.3g} packet-hops, {}", static_cast<double>(estimate.packet_hops),
                  rough_time(estimate.seconds()));
  if (estimate.packet_hops > kAskAbove && !yes) {
    throw ConfigError({{"--fidelity packet",
                        size + ": more than 10^9 need --yes. Fewer: larger --packet-bytes, a "
                               "smaller plan, or --fidelity flow"}});
  }
  print_error(fmt::format("stepsim: packets: {}\n", size));
}

}  // namespace stepsim
