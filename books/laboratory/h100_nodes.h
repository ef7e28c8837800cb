// Nodes of eight H100s with a network card each. Bandwidths are one way.

#pragma once

#include "topology/topology.h"

namespace stepsim {

inline constexpr double kNvlink = 450e9;        // B/s per GPU
inline constexpr double kNic = 50e9;            // B/s per GPU
inline constexpr double kNodeLinks = 8 * kNic;  // B/s

inline DgxSuperPodSpec h100_nodes(int nodes) {
  DgxSuperPodSpec spec;
  spec.nodes = nodes;
  spec.nvlink_bandwidth = Bandwidth(kNvlink);
  spec.nic_bandwidth = Bandwidth(kNic);
  return spec;
}

}  // namespace stepsim
