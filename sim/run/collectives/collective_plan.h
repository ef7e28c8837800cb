// CollectivePlans works out how each collective runs in each group of its communicator: the
// algorithm, the library's costs and, if all edges are one transfer, that transfer.
//
// Two kinds of collective are one transfer. In pipelined collectives the weight of a link is the
// sum of the bytes of all messages over it, and the latency is that of one trip through all rounds.
// Both are summed from the messages that a stepped run sends. The other kind runs in switches that
// add and copy while the data arrive, unless they run as packets.
//
// Of the ways that a library has (library_choice.h), or an algorithm by its protocols, the one is
// taken whose transfer would be over first on an idle network: latency plus the bytes of the
// busiest link over its bandwidth. It is worked out in the first group of each kind of a
// communicator, also if the collective is then stepped. Without a library ways within 1 % are equal
// and the first is taken.
//
// Most groups of a communicator are alike (group_kinds.h). The messages of a collective are added
// up once for a kind of group: its MessagePattern. A group of the kind only looks up its routes.

#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/base/ids.h"
#include "sim/collectives/algorithm.h"
#include "sim/collectives/library_choice.h"
#include "sim/program/op_graph.h"
#include "sim/run/collectives/collective_edges.h"
#include "sim/run/collectives/group_kinds.h"
#include "sim/run/ops/chip_share.h"
#include "sim/run/ops/exact_bytes.h"
#include "sim/run/simulation_options.h"

namespace stepsim {

struct CollectivePlan {
  std::unique_ptr<CollectiveAlgorithm> algorithm;  // null if it is one transfer
  LibraryCost cost{};
  ChipShare taken{};

  bool at_once = false;  // the whole collective is one transfer
  Bytes sent{};          // by all members together
  Bytes bytes{};         // on the link that carries most
  Duration latency{};
  std::vector<LinkUse> uses{};     // in order of links
  std::vector<ExactBytes> data{};  // data bytes over each of these links; empty: all are data
};

// How a collective runs in a group.
struct ChosenCollective {
  std::vector<std::uint32_t> chips;  // by member
  CollectiveWay way{};
  std::unique_ptr<CollectiveAlgorithm> algorithm;  // as its messages are sent when stepped
};

// Everything that a pipelined collective has in common in all groups of a kind.
struct MessagePattern {
  std::uint32_t edges = 0;   // CollectivePlans::edges()
  std::vector<Bytes> bytes;  // by edge
  Bytes sent{};
  LibraryCost cost{};
  ChipShare taken{};
};

// EdgeWays are the ways of the messages of one group, edge by edge.
struct EdgeWays {
  struct Part {
    LinkUse use;  // weight: share of the edge's bytes
    std::uint32_t edge = 0;
    bool of_adder = false;  // only what is added up, without the library's overhead
  };
  std::vector<Part> parts;
  std::vector<Duration> latencies;  // by edge
  std::vector<HopKind> kinds;       // by edge
};

class CollectivePlans {
 public:
  CollectivePlans(const OpGraph& graph, const Cluster& cluster, Granularity granularity,
                  Fidelity fidelity);

  // Costs O(different edges x links of a route) if it is one transfer, and O(messages of all ways)
  // for the first group of each kind.
  CollectivePlan plan_of(CollectiveWorkId work, GroupId group);
  // REQUIRES: the group has two members or more.
  ChosenCollective chosen_for(CollectiveWorkId work, GroupId group);
  // Returns the fastest way in which members alone exchange messages, no switches; nullopt: `auto`
  // has none. REQUIRES: as above.
  std::optional<ChosenCollective> chosen_among_members(CollectiveWorkId work, GroupId group);

  // The parts of a plan, for collectives that are one transfer.
  const GroupKinds::Place& place_of(CommunicatorId communicator, GroupId group);
  std::uint32_t pattern_of(CollectiveWorkId work, GroupId group);  // equal numbers: equal patterns
  const MessagePattern& pattern(std::uint32_t number) const { return patterns_[number].pattern; }
  const std::vector<CollectiveEdge>& edges(std::uint32_t number) const { return edges_[number]; }
  // `ways` is overwritten. `edges`: of a pattern that the group runs.
  void find_ways(std::uint32_t edges, CommunicatorId communicator, GroupId group, EdgeWays& ways);
  // Returns the latency of a pattern in a group whose edges have these latencies.
  Duration latency_of(std::uint32_t pattern, const std::vector<Duration>& latencies);

 private:
  struct Known {
    CollectiveWork work;
    std::uint32_t kind = 0;
    CollectiveWay way;
    MessagePattern pattern;
    struct Trip {
      std::vector<Duration> latencies;
      Duration all{};
    };
    std::vector<Trip> trips;
  };

  const CollectiveWork& work_of(CollectiveWorkId work) const {
    return graph_.collective_works[work.index()];
  }
  // A way of a collective, worked out.
  struct Tried {
    EdgeSums sums;
    std::uint32_t edges = 0;
    std::vector<Duration> latencies;  // of its routes, by edge
    Duration latency{};
    double seconds = 0;  // alone
  };
  GroupId first_like(CollectiveWorkId work, GroupId group);
  CollectiveTask task(const Known& known) const;
  // Works out the fastest way of `asked`, with messages among members alone if so wanted. Without
  // any there are no trips.
  Known work_out(CollectiveWorkId work, GroupId group, AlgorithmChoice asked, bool among_members);
  ChosenCollective chosen(const CollectiveWay& way, CollectiveWorkId work, GroupId group);
  Tried try_way(const Known& known, const CollectiveWay& way, GroupId group);
  std::size_t fastest(const std::vector<Tried>& tried) const;
  std::string why_of(AlgorithmChoice asked, const std::vector<CollectiveWay>& ways,
                     const std::vector<Tried>& tried, std::size_t best) const;
  Bandwidth narrowest(const std::vector<LinkId>& route) const;
  // Sets route_ to the links of an edge's messages, or to the one that they name, and returns their
  // latency. REQUIRES: chips_ are those of the group.
  Duration route_of_edge(const CollectiveEdge& edge, const GroupKinds::Place& place);
  std::uint32_t add_pattern(CollectiveWorkId work, GroupId group);
  std::uint32_t number_of(std::vector<CollectiveEdge> edges);
  void chips_of(CommunicatorId communicator, GroupId group);
  void make_transfer(CollectiveWorkId work, GroupId group, CollectivePlan& plan);

  const OpGraph& graph_;
  const Cluster& cluster_;
  Granularity granularity_;
  Fidelity fidelity_;
  GroupKinds kinds_;
  std::vector<std::vector<std::optional<GroupKinds::Place>>> places_;  // by communicator, group
  std::deque<Known> patterns_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_work_;  // by work and kind; compared
  std::deque<std::vector<CollectiveEdge>> edges_;
  std::vector<std::uint32_t> chips_;  // scratch: of one group
  std::vector<LinkId> route_;         // scratch
  EdgeWays ways_;                     // scratch
};

}  // namespace stepsim
