// assume_links() fills in what a cluster file leaves out and no network is without: latencies, by
// the kind of link, and the routing of a SuperPOD. Whoever writes 0 gets 0.
//
//   dgx_superpod { nodes: 128 }     ->  nvlink_latency: "0.25us" network_link_latency: "0.5us" ..
//
// The table in assumed_links.cc has every value with its source; docs/topologies.md shows it. Specs
// in C++ are untouched: their latencies are 0 unless given.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

namespace file {
class Cluster;
}

// Sets the fields of the cluster's topology that are unset. Returns a line for each kind of field:
// "assumed cluster.dgx_superpod.nvlink_latency=0.25us (NVLink)". REQUIRES: references to the
// catalog are resolved.
std::vector<std::string> assume_links(file::Cluster& cluster);

// The same lines of a cluster of the catalog or a file; none if it can't be read.
std::vector<std::string> assumed_links_of(const std::string& cluster);

}  // namespace stepsim
