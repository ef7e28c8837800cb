// Small clusters whose times can be worked out by hand, for studies and tests: one node, a line, a
// ring or a torus of chips that reach 1 PFLOP/s and 1 TB/s with every kernel. The communication
// library is ideal.

#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sim/hardware/cluster.h"
#include "topology/topology.h"

namespace stepsim {

// Returns a chip of 1 PFLOP/s and 1 TB/s that reaches its peak with every kernel and launches
// kernels in no time.
inline ChipSpec ideal_chip() {
  ChipSpec chip;
  chip.name = "ideal";
  chip.peak = peaks_of_all_types(Throughput(1e15));
  chip.memory_bandwidth = Bandwidth(1e12);
  chip.memory_capacity = Bytes(80'000'000'000);
  return chip;
}

inline Cluster cluster_of(const TopologySpec& spec, ChipSpec chip = ideal_chip()) {
  BuiltTopology built = build_topology(spec);
  return {.fabric = std::move(built.fabric),
          .router = std::move(built.router),
          .places = std::move(built.places),
          .chip = std::move(chip)};
}

// Returns one node of `gpus` chips on a switch. `bandwidth` is one way per chip; `latency` is that
// of a link, and a hop has two.
inline Cluster one_node(int gpus, Bandwidth bandwidth, Duration latency = {}) {
  DgxSuperPodSpec spec;
  spec.nodes = 1;
  spec.gpus_per_node = gpus;
  spec.nvlink_bandwidth = bandwidth;
  spec.nvlink_latency = latency;
  return cluster_of(spec);
}

inline Cluster ring_of(int chips, Bandwidth bandwidth, Duration latency = {}, bool wraps = true) {
  TorusSpec spec;
  spec.axes = {{.size = chips, .wraps = wraps}};
  spec.link_bandwidth = bandwidth;
  spec.link_latency = latency;
  return cluster_of(spec);
}

// Returns a torus whose axes all wrap, unless `wraps` says otherwise by axis.
inline Cluster torus_of(const std::vector<int>& sizes, Bandwidth bandwidth, Duration latency = {},
                        const std::vector<bool>& wraps = {}) {
  TorusSpec spec;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    spec.axes.push_back({.size = sizes[axis], .wraps = wraps.empty() || wraps[axis]});
  }
  spec.link_bandwidth = bandwidth;
  spec.link_latency = latency;
  return cluster_of(spec);
}

}  // namespace stepsim
