// The row `htsim-topology` of stepsim import: the .topo files of htsim's FatTreeTopology
// (Broadcom/csg-htsim@HEAD, and the Ultra Ethernet Consortium's branch of it): fat trees of two or
// three tiers of switches.
//
//   Nodes 1024
//   Tiers 3
//   Podsize 64
//   Tier 0
//   Downlink_speed_Gbps 100     also of the uplinks of the tier below
//   Radix_Down 8                ports towards hosts
//   Radix_Up 8                  not of the top tier
//   Downlink_Latency_ns 1000
//   Switch_Latency_ns 0  Oversubscribed 1  Bundle 1
//
// As in htsim: a leaf is cabled to all spines of its pod (of two tiers: to all), by `Bundle`
// cables; spine s of a pod is cabled to the cores s, s + n, s + 2n .. of n spines a pod. What htsim
// asserts of the numbers is checked. Hosts are chips. A message takes a switch's latency when it
// enters the switch. Switches choose among equal paths by the destination here (routing:
// destination; htsim's strategy is a flag of its command line).
//
// Keys that htsim doesn't know it skips: a note. Queue sizes have no counterpart.

#pragma once

#include "import/importer.h"

namespace stepsim {

Imported import_htsim_topology(const ImportRequest& request);

}  // namespace stepsim
