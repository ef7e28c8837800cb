// An NVLink domain: GPUs that reach each other through NVSwitches, all at full rate.
//
//      crossbar (no links_per_switch)          links_per_switch {5, 4, 4, 5}: HGX H100
//
//              nvswitch                  nvswitch0   nvswitch1   nvswitch2   nvswitch3
//            /  |  ...  \                  5|  \5__   4|          4|          5|
//        gpu0  gpu1 ... gpu7             gpu0   gpu1 ...      every GPU is cabled to every switch
//
//   machine            GPUs  one way a GPU           links_per_switch
//   DGX/HGX A100          8  300 GB/s (12 links)     2 2 2 2 2 2
//   DGX/HGX H100          8  450 GB/s (18 links)     5 4 4 5
//   HGX H800              8  200 GB/s (8 links)      2 2 2 2
//   DGX/HGX B200          8  900 GB/s (18 links)     9 9
//   GB200 NVL72          72  900 GB/s (18 links)     1, eighteen times: 18 switches of 72 ports
//   domain of 576       576  900 GB/s: 8 racks of 72; a leaf_spine (catalog: gb200-nvl576)
//
// Which form to choose: in a crossbar a message has the whole bandwidth of its GPUs. NCCL and
// NVSwitch give that to one large transfer, which is cut into pieces over all links. With ports a
// message takes ONE switch, so at most its GPU's links to that switch. That is right for many small
// messages or sprayed packets, and too slow for one large flow. The switch is that of link number
// (destination modulo links) or a hash (PathChoice). Adaptive routing spreads a message over all
// switches, in proportion to its GPU's links.
//
// Levels of Places: gpu.

#pragma once

#include <optional>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "topology/graph/built_topology.h"
#include "topology/graph/path_choice.h"

namespace stepsim {

template <class Struct>
class FieldTable;

struct NvlinkDomainSpec {
  int gpus = 8;
  Bandwidth gpu_bandwidth{450e9};       // all links of a GPU together, one way
  Duration link_latency{};              // GPU to switch or back; 0 unless given
  std::vector<int> links_per_switch{};  // of each GPU, by switch; empty: one crossbar
  std::optional<int> switch_ports{};    // links that a switch takes; given only to check the spec
  PathChoice routing{};
};

// The fields in files: topology/kinds/switched/nvlink_domain_fields.cc.
const FieldTable<NvlinkDomainSpec>& nvlink_domain_fields();

std::vector<Problem> check(const NvlinkDomainSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const NvlinkDomainSpec& spec);

}  // namespace stepsim
