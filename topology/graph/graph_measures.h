// Measures of a fabric as a graph: whether it is connected, how far apart its chips are, and how
// much bandwidth crosses its middle. Nodes are vertices and one-way links are edges; routers are
// not asked, so these are bounds on what any routing can do. A path may lead through chips, as the
// routes of some topologies do.
//
// Components and flows are computed with Boost.Graph. Not for the inner loop: the diameter of a
// torus of 9,000 chips takes tenths of a second, a flow through it hundredths.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/network/fabric.h"

namespace stepsim {

// True if every node reaches every other one. O(nodes + links).
bool connected(const Fabric& fabric);

// Chips that are not among those that all reach each other both ways (the largest such set, the
// first of equal ones), by NodeId. Empty if every chip reaches every other. O(nodes + links).
std::vector<NodeId> chips_cut_off(const Fabric& fabric);

// Names these chips in a message: "a, b and 5 more are cut off". REQUIRES: `chips` is not empty.
std::string cut_off_text(const Fabric& fabric, const std::vector<NodeId>& chips);

// Least number of links from `from` to each node, by NodeId; nothing where there is no path.
// O(nodes + links).
std::vector<std::optional<std::uint32_t>> hops_from(const Fabric& fabric, NodeId from);

// Most hops between two chips by the shortest path; nothing if some chip does not reach some
// other, 0 for a single chip. O(chips * links * diameter / 512).
std::optional<std::uint32_t> diameter_in_hops(const Fabric& fabric);

// The maximum flow: the bandwidth at which all of `from` together can send to all of `to` at once,
// while the nodes between them pass on. With `usable` (by LinkId) only over those links. Capacities
// are rounded to whole bytes per second. 0 if one of them is empty. REQUIRES: no node is in both.
Bandwidth flow_between(const Fabric& fabric, const std::vector<NodeId>& from,
                       const std::vector<NodeId>& to, const std::vector<bool>* usable = nullptr);

// One-way bandwidth from the first half of the chips (by NodeId; the smaller half if they are odd)
// to the second: the maximum flow, so equal to the narrowest cut between the two halves. Builders
// number chips innermost level first, so the halves are parted along the outermost level; this is
// one cut, not the least over all halvings. Where it falls inside an inner level (an odd number of
// nodes), the links in there count too. 0 with fewer than two chips.
Bandwidth bisection_bandwidth(const Fabric& fabric);

}  // namespace stepsim
