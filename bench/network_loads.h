// Loads for measuring the network models, made from fixed seeds: flows over explicit routes, as in
// a network case.

#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/base/units.h"
#include "sim/network/fabric.h"
#include "sim/network/flow_run.h"

namespace stepsim {

struct Load {
  Fabric fabric;
  FlowList flows;
};

// RandomFlows gives the arrivals and sizes of a random load.
struct RandomFlows {
  std::size_t count;
  Duration mean_gap{};  // between two starts, exponentially distributed; 0: all start at once
  Bytes bytes{};        // 0: multiples of 8 bytes from 1 to 64 MB, uniformly
  std::uint64_t seed = 1;
};

struct TorusLinks {
  std::uint32_t side;  // of a cube
  Bandwidth bandwidth;
  Duration latency{};
};

// Random pairs on a torus, routed in dimension order, the shorter way round, ties in plus
// direction.
Load random_on_torus(const TorusLinks& links, const RandomFlows& flows);

// Three levels of k-port switches, with k^3/4 hosts at 50 GB/s. Links to the core have 1/taper of
// that. Up-ports are chosen by destination (d-mod-k).
struct FatTree {
  std::uint32_t ports;
  double taper = 1;

  std::uint32_t hosts() const { return ports * ports * ports / 4; }
};

Load random_on_fat_tree(const FatTree& tree, const RandomFlows& flows);

// Every host sends `bytes` to every other one, all at once.
Load all_to_all_on_fat_tree(const FatTree& tree, Bytes bytes);

}  // namespace stepsim
