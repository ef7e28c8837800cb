// What the flow network costs. Two kinds of load:
//
//   Uncontended...   the simulator's daily work: pipelined collectives alone on their links
//   Poisson, Random  heavy contention, where each change of one rate alters others
//
// Loads are made here from fixed seeds. items_per_second counts transfers. The cost of contention
// is linear in the changes of rates, so s_per_update should not grow with the size of a load (the
// changes may: ten times the flows at once on one torus are ten times as crowded).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "sim/network/flow_network.h"
#include "sim/network/latency_bandwidth_network.h"

namespace stepsim {
namespace {

using namespace literals;

struct Load {
  Fabric fabric;
  struct Flow {
    Time start;
    Bytes bytes;
    std::vector<LinkUse> route;
  };
  std::vector<Flow> flows;  // in order of start
};

// Starts every flow at its time and runs to the end; returns the number of rate updates.
std::uint64_t run(const Load& load, Network& network) {
  std::vector<TransferId> done;
  std::size_t next = 0;
  for (;;) {
    std::optional<Time> now = network.next_event();
    if (next == load.flows.size() && !now) break;
    if (next < load.flows.size() && (!now || load.flows[next].start < *now)) {
      now = load.flows[next].start;
    } else {
      done.clear();
      network.advance(*now, done);
    }
    for (; next < load.flows.size() && load.flows[next].start == *now; ++next) {
      const Load::Flow& flow = load.flows[next];
      network.start(*now, TransferId(static_cast<std::uint32_t>(next)),
                    {flow.bytes, Duration::zero(), flow.route});
    }
    network.settle(*now);
  }
  return network.statistics().rate_updates;
}

void report(benchmark::State& state, const Load& load) {
  std::uint64_t rate_updates = 0;
  for (auto _ : state) {
    FlowNetwork network(load.fabric);
    rate_updates = run(load, network);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(load.flows.size()));
  state.counters["rate_updates"] = static_cast<double>(rate_updates);
  state.counters["s_per_update"] = benchmark::Counter(
      static_cast<double>(rate_updates) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// Multiples of 8 bytes from 1 to 64 MB.
Bytes random_size(std::mt19937_64& random) {
  return Bytes(static_cast<std::int64_t>(8 * (125'000 + random() % 7'875'000)));
}

// Exponential gap with this mean. (std::exponential_distribution is not the same everywhere.)
Duration random_gap(std::mt19937_64& random, Duration mean) {
  const double uniform = (static_cast<double>(random() >> 11) + 1) * 0x1p-53;
  return Duration(std::llround(-std::log(uniform) * static_cast<double>(mean.count())));
}

// ---- torus, dimension order, the shorter way round ----

struct Torus {
  std::uint32_t side;
  Fabric fabric;
  std::uint32_t nodes() const { return side * side * side; }
};

LinkId torus_link(std::uint32_t node, std::uint32_t axis, bool is_plus) {
  return LinkId(node * 6 + axis * 2 + (is_plus ? 0 : 1));
}

Torus make_torus(std::uint32_t side, Bandwidth bandwidth) {
  Torus torus{side, {}};
  for (std::uint32_t node = 0; node < torus.nodes(); ++node) torus.fabric.add(NodeKind::kChip, "");
  for (std::uint32_t node = 0; node < torus.nodes(); ++node) {
    std::uint32_t stride = 1;
    for (std::uint32_t axis = 0; axis < 3; ++axis, stride *= side) {
      const std::uint32_t at = node / stride % side;
      const std::uint32_t base = node - at * stride;
      torus.fabric.connect_one_way(NodeId(node), NodeId(base + (at + 1) % side * stride), bandwidth,
                                   Duration::zero());
      torus.fabric.connect_one_way(NodeId(node), NodeId(base + (at + side - 1) % side * stride),
                                   bandwidth, Duration::zero());
    }
  }
  return torus;
}

std::vector<LinkUse> torus_route(const Torus& torus, std::uint32_t from, std::uint32_t to) {
  std::vector<LinkUse> route;
  std::uint32_t node = from;
  std::uint32_t stride = 1;
  for (std::uint32_t axis = 0; axis < 3; ++axis, stride *= torus.side) {
    const std::uint32_t goal = to / stride % torus.side;
    const std::uint32_t ahead = (goal + torus.side - node / stride % torus.side) % torus.side;
    const bool is_plus = ahead <= torus.side / 2;
    for (std::uint32_t at = node / stride % torus.side; at != goal;
         at = node / stride % torus.side) {
      route.push_back({torus_link(node, axis, is_plus), 1});
      const std::uint32_t next = (at + (is_plus ? 1 : torus.side - 1)) % torus.side;
      node = node - at * stride + next * stride;
    }
  }
  return route;
}

Load torus_load(std::uint32_t side, std::size_t flows, Duration mean_gap) {
  Torus torus = make_torus(side, 45_GBps);
  std::mt19937_64 random(23);
  Load load;
  Time now{};
  while (load.flows.size() < flows) {
    const auto from = static_cast<std::uint32_t>(random() % torus.nodes());
    const auto to = static_cast<std::uint32_t>(random() % torus.nodes());
    if (from == to) continue;
    load.flows.push_back({now, random_size(random), torus_route(torus, from, to)});
    now = now + random_gap(random, mean_gap);
  }
  load.fabric = std::move(torus.fabric);
  return load;
}

void PoissonTorus8(benchmark::State& state) {
  report(state, torus_load(8, static_cast<std::size_t>(state.range(0)), 4us));
}
BENCHMARK(PoissonTorus8)->Arg(2'000)->Arg(20'000)->Unit(benchmark::kMillisecond);

void RandomTorus16(benchmark::State& state) {
  report(state, torus_load(16, static_cast<std::size_t>(state.range(0)), 0s));
}
BENCHMARK(RandomTorus16)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMillisecond);

// ---- three-level fat tree of k-port switches, d-mod-k routes ----

Load fat_tree_load(std::uint32_t ports, double taper, std::size_t flows, Duration mean_gap) {
  const std::uint32_t half = ports / 2;
  const std::uint32_t hosts = half * half * ports;
  Load load;
  const NodeId any = load.fabric.add(NodeKind::kSwitch, "");
  // Up-links, then down-links, of each host, of each edge switch, of each aggregation switch: all
  // three levels have as many links as there are hosts.
  for (std::uint32_t level = 0; level < 6; ++level) {
    for (std::uint32_t i = 0; i < hosts; ++i) {
      load.fabric.connect_one_way(any, any, level >= 4 ? 50_GBps / taper : 50_GBps,
                                  Duration::zero());
    }
  }
  const auto link = [&](std::uint32_t level, bool is_up, std::uint32_t index) {
    return LinkUse{LinkId((2 * level + (is_up ? 0u : 1u)) * hosts + index), 1};
  };
  std::mt19937_64 random(17);
  Time now{};
  while (load.flows.size() < flows) {
    const auto from = static_cast<std::uint32_t>(random() % hosts);
    const auto to = static_cast<std::uint32_t>(random() % hosts);
    if (from == to) continue;
    std::vector<LinkUse> route{link(0, true, from)};
    const std::uint32_t up_port = to % half;
    const std::uint32_t core_port = to / half % half;
    const auto aggregation = [&](std::uint32_t host) {
      return host / (half * half) * half + up_port;
    };
    if (from / half != to / half) {
      route.push_back(link(1, true, from / half * half + up_port));
      if (from / (half * half) != to / (half * half)) {
        route.push_back(link(2, true, aggregation(from) * half + core_port));
        route.push_back(link(2, false, aggregation(to) * half + core_port));
      }
      route.push_back(link(1, false, to / half * half + up_port));
    }
    route.push_back(link(0, false, to));
    load.flows.push_back({now, random_size(random), route});
    now = now + random_gap(random, mean_gap);
  }
  return load;
}

void PoissonFatTree8Tapered(benchmark::State& state) {
  report(state, fat_tree_load(8, 2, static_cast<std::size_t>(state.range(0)), 16us));
}
BENCHMARK(PoissonFatTree8Tapered)->Arg(2'000)->Unit(benchmark::kMillisecond);

void PoissonFatTree16(benchmark::State& state) {
  report(state, fat_tree_load(16, 1, static_cast<std::size_t>(state.range(0)), 1500ns));
}
BENCHMARK(PoissonFatTree16)->Arg(10'000)->Unit(benchmark::kMillisecond);

// ---- collectives alone on their links ----

// `range(0)` collectives of `range(1)` links each start together and end together; 16 links are
// the way of 8 GPUs to their switch and back, 64 a ring across nodes. One iteration is one such
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
