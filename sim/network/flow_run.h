// run_flows() runs a fixed list of flows through a network and returns when each one ends. A flow
// begins at its start time, or when the last flow that it waits for has ended if that is later.
// Then it pays the latency of its whole route and moves its bytes.
//
//   FlowList list;
//   list.add(Time{}, 64_MiB, route);               // flow 0
//   list.add(Time{}, 64_MiB, back);                // flow 1 ...
//   list.dependences.push_back({.flow = 1, .after = 0});  // ... begins when flow 0 ends
//   const FlowRun result = run_flows(list, fabric, *network);
//
// It does with flows what simulate() does with programs: the network goes first at each instant,
// then all flows that begin then are started, in order of their numbers, and the rates are settled
// once. A flow that waits begins in the very instant in which its last predecessor ends.
//
// A list is flat, 24 bytes a flow and 4 a link of its route, so a million flows fit in tens of
// megabytes. run_flows() is O(flows + dependences) besides the network and the sorting of starts.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/network/fabric.h"
#include "sim/network/network.h"

namespace stepsim {

struct FlowList {
  struct Flow {
    Time start;
    Bytes bytes;
    std::uint32_t route_begin;  // in route_links
    std::uint32_t route_size;
  };

  struct Dependence {
    std::uint32_t flow;
    std::uint32_t after;
  };

  std::vector<Flow> flows;
  std::vector<LinkId> route_links;  // of all flows
  std::vector<Dependence> dependences;

  // REQUIRES: the route names no link twice.
  void add(Time start, Bytes bytes, std::span<const LinkId> route);

  std::span<const LinkId> route(const Flow& flow) const {
    return std::span(route_links).subspan(flow.route_begin, flow.route_size);
  }
};

struct FlowRun {
  static constexpr Time kNotEnded{Duration::max()};

  std::vector<Time> finish;  // by flow; kNotEnded: never
  std::string blocked;       // why some never end (Network::blocked_report); empty: all end
  std::uint64_t events = 0;  // starts of flows, and instants at which the network advanced
};

// REQUIRES: the network is new and works on `fabric`; the dependences have no cycle.
FlowRun run_flows(const FlowList& list, const Fabric& fabric, Network& network);

// Returns cycles among the dependences: lists of flows in which each waits for the next one and the
// last one for the first. Every flow that can never begin leads to one of them. Empty if there is
// no such flow. O(flows + dependences).
std::vector<std::vector<std::uint32_t>> find_cycles(const FlowList& list);

}  // namespace stepsim
