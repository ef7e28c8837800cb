#include "books/laboratory/laboratory.h"

#include <fmt/format.h>

#include <utility>

#include "sim/run/collectives/packet_estimate.h"

namespace stepsim {
namespace {

constexpr std::uint64_t kQuickPacketHops = 3'000'000;  // a run of less than a second
constexpr std::uint64_t kMostPacketHops = 20'000'000;  // of a few seconds
constexpr std::int64_t kSmallestPacket = 4096;
constexpr std::int64_t kCoarsePacket = 1 << 18;
constexpr std::int64_t kLargestPacket = 1 << 22;

Bytes packet_size(const OpGraph& graph, const Cluster& cluster, const SimulationOptions& options) {
  PacketOptions packets = options.packets;
  std::uint64_t hops = 0;
  for (std::int64_t bytes = kSmallestPacket; bytes <= kLargestPacket; bytes *= 2) {
    packets.packet_bytes = Bytes(bytes);
    hops = estimate_packets(graph, cluster, packets, options.steps).packet_hops;
    const std::uint64_t most = bytes < kCoarsePacket ? kQuickPacketHops : kMostPacketHops;
    if (hops <= most) return packets.packet_bytes;
  }
  throw StudySkipped(
      fmt::format("{:.2g} packet-hops even with packets of 4 MiB", static_cast<double>(hops)));
}

}  // namespace

SimulationResult Laboratory::simulate(const OpGraph& graph, const Cluster& cluster,
                                      SimulationOptions options) const {
  options.fidelity = fidelity;
  options.progress = progress;
  options.progress_context = progress_context;
  if (fidelity == Fidelity::kPacket) {
    options.granularity = Granularity::kStepped;
    options.packets.packet_bytes = packet_size(graph, cluster, options);
  }
  return stepsim::simulate(graph, cluster, options);
}

SimulationResult Laboratory::simulate(const Experiment& experiment, const Cluster& cluster,
                                      ExperimentOptions options) const {
  options.fidelities = {fidelity};
  options.progress = progress;
  options.progress_context = progress_context;
  if (fidelity == Fidelity::kPacket) {
    options.granularity = Granularity::kStepped;
    options.before = [](const OpGraph& graph, const Cluster& on, SimulationOptions& simulation) {
      simulation.packets.packet_bytes = packet_size(graph, on, simulation);
    };
  }
  return std::move(simulate_experiment(experiment, cluster, options).runs.front().result);
}

SimulationResult Laboratory::simulate_packets(const OpGraph& graph, const Cluster& cluster,
                                              SimulationOptions options) const {
  options.fidelity = Fidelity::kPacket;
  options.granularity = Granularity::kStepped;
  options.progress = progress;
  options.progress_context = progress_context;
  return stepsim::simulate(graph, cluster, options);
}

double Laboratory::seconds(const OpGraph& graph, const Cluster& cluster,
                           const SimulationOptions& options) const {
  return to_seconds(simulate(graph, cluster, options).step_time);
}

}  // namespace stepsim
