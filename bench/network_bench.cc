// The cost of the flow network, under two kinds of load:
//
//   Uncontended...   the simulator's daily work: pipelined collectives alone on their links
//   Poisson, Random  heavy contention, where each change of one rate alters others
//
// Loads: network_loads.h. items_per_second counts transfers. The cost of contention
// is linear in the changes of rates, so s_per_update should not grow with the size of a load (the
// changes may: ten times the flows at once on one torus are ten times as crowded).
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "bench/network_loads.h"
#include "sim/network/flow_network.h"
#include "sim/network/latency_bandwidth_network.h"

namespace stepsim {
namespace {

using namespace literals;

void report(benchmark::State& state, const Load& load) {
  std::uint64_t rate_updates = 0;
  for (auto _ : state) {
    FlowNetwork network(load.fabric);
    run_flows(load.flows, load.fabric, network);
    rate_updates = network.statistics().rate_updates;
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(load.flows.flows.size()));
  state.counters["rate_updates"] = static_cast<double>(rate_updates);
  state.counters["s_per_update"] = benchmark::Counter(
      static_cast<double>(rate_updates) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

std::size_t count_of(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(0));
}

void PoissonTorus8(benchmark::State& state) {
  report(state, random_on_torus({.side = 8, .bandwidth = 45_GBps},
                                {.count = count_of(state), .mean_gap = 4us, .seed = 23}));
}
BENCHMARK(PoissonTorus8)->Arg(2'000)->Arg(20'000)->Unit(benchmark::kMillisecond);

void RandomTorus16(benchmark::State& state) {
  report(state, random_on_torus({.side = 16, .bandwidth = 45_GBps},
                                {.count = count_of(state), .seed = 23}));
}
BENCHMARK(RandomTorus16)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMillisecond);

void PoissonFatTree8Tapered(benchmark::State& state) {
  report(state, random_on_fat_tree({.ports = 8, .taper = 2},
                                   {.count = count_of(state), .mean_gap = 16us, .seed = 17}));
}
BENCHMARK(PoissonFatTree8Tapered)->Arg(2'000)->Unit(benchmark::kMillisecond);

void PoissonFatTree16(benchmark::State& state) {
  report(state, random_on_fat_tree({.ports = 16},
                                   {.count = count_of(state), .mean_gap = 1500ns, .seed = 17}));
}
BENCHMARK(PoissonFatTree16)->Arg(10'000)->Unit(benchmark::kMillisecond);

// ---- collectives alone on their links ----

// `range(0)` collectives of `range(1)` links each start together and end together. 16 links are the
// way of 8 GPUs to their switch and back; 64 are a ring across nodes. One iteration is one such
// round. Every transfer pays a latency of 5 us first.
void uncontended(benchmark::State& state, Network& network, std::uint32_t links) {
  const auto together = static_cast<std::uint32_t>(state.range(0));
  const auto width = static_cast<std::uint32_t>(state.range(1));
  const std::uint32_t groups = links / width;
  std::vector<std::vector<LinkUse>> uses(groups);
  for (std::uint32_t link = 0; link < links; ++link)
    uses[link / width].push_back({LinkId(link), 1});
  Time now{};
  std::uint32_t group = 0;
  std::vector<TransferId> done;
  for (auto _ : state) {
    for (std::uint32_t i = 0; i < together; ++i) {
      network.start(now, TransferId(group), {8'388'608_B, 5us, uses[group]});
      group = (group + 1) % groups;
    }
    network.settle(now);
    done.clear();
    while (const std::optional<Time> next = network.next_event()) {
      now = *next;
      network.advance(now, done);
      network.settle(now);
    }
  }
  state.SetItemsProcessed(state.iterations() * together);
  if (done.size() != together) state.SkipWithError("not all transfers ended");
}

constexpr std::uint32_t kUncontendedLinks = 8192;

Fabric separate_links() {
  Fabric fabric;
  const NodeId any = fabric.add(NodeKind::kSwitch, "");
  for (std::uint32_t link = 0; link < kUncontendedLinks; ++link) {
    fabric.connect_one_way(any, any, 450_GBps, 0s);
  }
  return fabric;
}

void UncontendedFlow(benchmark::State& state) {
  const Fabric fabric = separate_links();
  FlowNetwork network(fabric);
  uncontended(state, network, kUncontendedLinks);
}
BENCHMARK(UncontendedFlow)->Args({1, 16})->Args({64, 16})->Args({512, 16})->Args({64, 64});

void UncontendedLatencyBandwidth(benchmark::State& state) {
  const Fabric fabric = separate_links();
  const auto network = make_latency_bandwidth_network(fabric);
  uncontended(state, *network, kUncontendedLinks);
}
BENCHMARK(UncontendedLatencyBandwidth)->Args({64, 16});

}  // namespace
}  // namespace stepsim
