// A box of GPUs without NVLink: PCIe switches below one or two processor sockets.
//
//            socket0 ============== socket1          socket_bandwidth (UPI, xGMI), one way
//            /      \               /      \         .
//      switch0    switch1     switch2    switch3     one x16 port each: gpu_bandwidth, shared
//       /   \      /   \       /   \      /   \      .
//     gpu0 gpu1  gpu2 gpu3   gpu4 gpu5  gpu6 gpu7    gpu_bandwidth (PCIe 4 x16: 32 GB/s, one way)
//
// Two GPUs have one route: up to the first node that they share, and down. The route between GPUs
// of different sockets uses the link between the sockets. A GPU has this one slot: to a network
// card of its host (composed.h) it goes by its switch and its socket, too (host_exits.h).
//
// Levels of Places: gpu (of a switch), pcie_switch, socket. Levels of one member are left out.

#pragma once

#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "topology/graph/built_topology.h"

namespace stepsim {

template <class Struct>
class FieldTable;

struct PcieBoxSpec {
  int gpus = 8;
  int gpus_per_switch = 2;
  int sockets = 2;                   // 1 or 2
  Bandwidth gpu_bandwidth{32e9};     // each PCIe link, one way
  Bandwidth socket_bandwidth{32e9};  // between two sockets, one way; assumed, machines vary widely
  Duration link_latency{};           // each link; 0 unless given
};

// The fields in files: topology/kinds/switched/pcie_box_fields.cc.
const FieldTable<PcieBoxSpec>& pcie_box_fields();

std::vector<Problem> check(const PcieBoxSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const PcieBoxSpec& spec);

}  // namespace stepsim
