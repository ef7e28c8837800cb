#include "tests/fuzz/random/random_run.h"

#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

#include "experiment/build_cluster.h"
#include "proto/load_experiment.h"
#include "sim/run/collectives/packet_estimate.h"
#include "tests/fuzz/input_on_disk.h"
#include "tests/fuzz/random/run_laws.h"

namespace stepsim {
namespace {

constexpr std::uint64_t kMostPacketHops = 200'000;  // a fifth of a second

// Refuses runs that would take long.
void refuse_many_packets(const OpGraph& graph, const Cluster& cluster, SimulationOptions& options) {
  if (options.fidelity != Fidelity::kPacket) return;
  const PacketEstimate estimate = estimate_packets(graph, cluster, options.packets, options.steps);
  if (estimate.packet_hops <= kMostPacketHops) return;
  throw_if_any({{"simulation.packet_bytes", "makes too many packets for a test"}});
}

// Queues with little room may wait for each other in a circle, as in lossless networks.
bool is_circle_of_queues(const DeadlockError& error) {
  return std::string_view(error.what()).find("a circle of full buffers") != std::string_view::npos;
}

LoadedExperiment load(std::string_view text) {
  const InputOnDisk file(text, ".json");
  LoadedExperiment loaded = load_with_topology({.experiment = file.path()});
  loaded.simulation.before = refuse_many_packets;
  return loaded;
}

}  // namespace

RandomOutcome run_random(std::string_view experiment, Laws laws) {
  std::optional<LoadedExperiment> loaded;
  try {
    loaded.emplace(load(experiment));
    const Cluster cluster = cluster_for_steps(loaded->experiment, std::move(loaded->topology));
    const SimulatedExperiment done =
        simulate_experiment(loaded->experiment, cluster, loaded->simulation);
    RandomOutcome outcome{.json = json_of_run(*loaded, cluster, done)};
    if (laws == Laws::kAll) outcome.broken = broken_law(*loaded, cluster, done, outcome.json);
    return outcome;
  } catch (const ConfigError& error) {
    return {.refused = error.problems()};
  } catch (const DeadlockError& error) {
    if (is_circle_of_queues(error)) {
      return {.refused = {{"simulation.buffer_bytes", "queues wait for each other in a circle"}}};
    }
    if (loaded && !loaded->experiment.plan.overlap.pipeline) {
      return {.refused = {{"plan.overlap_pipeline", "blocking messages wait for each other"}}};
    }
    return {.broken = error.what()};
  } catch (const std::range_error& error) {
    return {.refused = {{"range", error.what()}}};
  } catch (const std::exception& error) {
    return {.broken = error.what()};
  }
}

std::uint64_t digest_of(std::string_view text) {
  std::uint64_t digest = 0xcbf29ce484222325U;
  for (const char letter : text) {
    digest = (digest ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  return digest;
}

}  // namespace stepsim
