// Measures of a fabric as a graph: whether it is connected, how far apart its chips are, and how
// much bandwidth leads from some to others; bisection.h has what crosses its middle. Nodes are
// vertices and one-way links are edges. Routers are not asked, so the results are bounds on any
// routing. A path may lead through chips, as the routes of some topologies do.
//
// Boost.Graph computes components and flows. These functions are not for the inner loop: the
// diameter of a torus of 9,000 chips takes tenths of a second, a flow through it hundredths.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/network/fabric.h"

namespace stepsim {

// Returns whether every node reaches every other one. O(nodes + links).
bool connected(const Fabric& fabric);

// Returns the chips, by NodeId, outside the largest set of chips that all reach each other both
// ways (the first of equal sets). Empty if every chip reaches every other. O(nodes + links).
std::vector<NodeId> chips_cut_off(const Fabric& fabric);

// Returns the names of these chips for a message: "a, b and 5 more are cut off". REQUIRES: `chips`
// is not empty.
std::string cut_off_text(const Fabric& fabric, const std::vector<NodeId>& chips);

// Returns the least number of links from `from` to each node, by NodeId; nullopt if there is no
// path. O(nodes + links).
std::vector<std::optional<std::uint32_t>> hops_from(const Fabric& fabric, NodeId from);

// Returns the most hops between two chips by the shortest path; nullopt if some chip does not reach
// some other; 0 for a single chip. O(chips * links * diameter / 512).
std::optional<std::uint32_t> diameter_in_hops(const Fabric& fabric);

// Returns the maximum flow: the bandwidth at which all of `from` together can send to all of `to`
// at once, while the nodes between them forward. With `usable` (by LinkId) it uses only those
// links. Capacities are rounded to whole bytes per second. 0 if one of the sets is empty. REQUIRES:
// no node is in both.
Bandwidth flow_between(const Fabric& fabric, const std::vector<NodeId>& from,
                       const std::vector<NodeId>& to, const std::vector<bool>* usable = nullptr);

}  // namespace stepsim
