// The cost of the packet network: items_per_second counts packet-hops (a packet over a link), by
// the CPU clock. Loads are made from fixed seeds. Starts are spread so that packets of different
// messages share links but no instants, which is the expensive case.
//
//   Torus        random pairs on an 8x8x8 torus, 1 MiB each: 6 links a message
//   FatTree      random pairs on a fat tree of 16-port switches, 4 MiB each: 6 links
//   AllToAll     every pair of 128 hosts, all at once: packets do share instants, queues are long
//   ...Credits   with buffers of 64 KiB a link
#include <benchmark/benchmark.h>

#include <cstdint>

#include "bench/network_loads.h"
#include "sim/network/packets/packet_network.h"

namespace stepsim {
namespace {

using namespace literals;

void run(benchmark::State& state, const Load& load, const PacketOptions& options) {
  std::uint64_t hops = 0;
  for (auto _ : state) {
    const auto network = make_packet_network(load.fabric, options);
    benchmark::DoNotOptimize(run_flows(load.flows, load.fabric, *network));
    hops = network->statistics().packet_hops;
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(hops));
  state.counters["packet_hops"] = static_cast<double>(hops);
}

PacketOptions with_buffers() {
  return {.buffer_bytes = 64_KiB};
}

PacketOptions cut_through() {
  return {.switching = Switching::kCutThrough};
}

Load torus(std::size_t messages) {
  return random_on_torus({.side = 8, .bandwidth = 50_GBps, .latency = 500ns},
                         {.count = messages, .mean_gap = 50ns, .bytes = 1_MiB});
}

Load fat_tree() {
  return random_on_fat_tree({.ports = 16}, {.count = 1'000, .mean_gap = 50ns, .bytes = 4_MiB});
}

Load all_to_all() {
  return all_to_all_on_fat_tree({.ports = 8}, 64_KiB);
}

// The slope over sizes shows that the cost is linear in packet-hops.
void Torus(benchmark::State& state) {
  run(state, torus(static_cast<std::size_t>(state.range(0))), {});
}
void TorusCutThrough(benchmark::State& state) {
  run(state, torus(1'000), cut_through());
}
void FatTreePairs(benchmark::State& state) {
  run(state, fat_tree(), {});
}
void FatTreePairsCredits(benchmark::State& state) {
  run(state, fat_tree(), with_buffers());
}
void AllToAll(benchmark::State& state) {
  run(state, all_to_all(), {});
}
void AllToAllCredits(benchmark::State& state) {
  run(state, all_to_all(), with_buffers());
}

BENCHMARK(Torus)->Arg(100)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMillisecond);
BENCHMARK(TorusCutThrough)->Unit(benchmark::kMillisecond);
BENCHMARK(FatTreePairs)->Unit(benchmark::kMillisecond);
BENCHMARK(FatTreePairsCredits)->Unit(benchmark::kMillisecond);
BENCHMARK(AllToAll)->Unit(benchmark::kMillisecond);
BENCHMARK(AllToAllCredits)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepsim
