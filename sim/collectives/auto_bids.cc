#include "sim/collectives/auto_bids.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "sim/collectives/algorithms/flat_algorithm.h"
#include "sim/collectives/algorithms/tree_packing.h"

namespace stepsim {
namespace {

constexpr std::uint32_t kDirectMembers = 64;  // up to this size, send everything at once

// RingCost is the cost of the ring, or of the rings level by level.
struct RingCost {
  std::int64_t rounds = 0;
  std::int64_t sent = 0;  // bytes sent by a member
  std::int64_t bytes() const { return rounds * kTripBytes + sent; }
};

RingCost cost_of_rings(const CollectiveTask& task, const GroupShape& shape) {
  const std::int64_t passes = task.op == CollectiveOp::kAllReduce ? 2 : 1;
  RingCost cost{.sent = passes * (task.bytes.value() - task.bytes.value() / shape.members())};
  for (const GroupDimension& dimension : shape.dimensions) {
    cost.rounds += passes * (dimension.size - 1);
  }
  return cost;
}

// Returns how many ways a message between two members takes on average. O(members x ways).
double mean_distance(const MemberWays& ways, std::uint32_t members) {
  std::vector<std::vector<std::uint32_t>> next(members);
  for (const MemberWays::Way& way : ways.ways) next[way.from].push_back(way.to);
  double sum = 0;
  for (std::uint32_t from = 0; from < members; ++from) {
    std::vector<std::uint32_t> distance(members, 0);
    std::vector<std::uint32_t> reached = {from};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const std::uint32_t to : next[reached[i]]) {
        if (to == from || distance[to] > 0) continue;
        distance[to] = distance[reached[i]] + 1;
        sum += distance[to];
        reached.push_back(to);
      }
    }
  }
  return sum / members / (members - 1);
}

// Bids for an algorithm that replaces rings where trips weigh more than bytes.
Bid bid_few_rounds(const CollectiveTask& task, const GroupShape& shape, std::int64_t rounds,
                   std::int64_t sent) {
  if (shape.has_torus_axis()) return std::nullopt;
  const RingCost rings = cost_of_rings(task, shape);
  if (rings.rounds * kTripBytes <= rings.sent) return std::nullopt;
  std::int64_t bytes = rounds * kTripBytes + sent;
  if (!shape.ways.empty()) {  // messages pass through members, over all links at best
    const double share = std::ranges::min(shape.ways.links).value() /
                         least_ports(shape.ways, shape.members()).value();
    bytes = std::llround(
        mean_distance(shape.ways, shape.members()) *
        (static_cast<double>(rounds * kTripBytes) + share * static_cast<double>(sent)));
  }
  return AutoBid{bytes, "trips weigh more than bytes at this size: " + std::to_string(rounds) +
                            " rounds instead of the " + std::to_string(rings.rounds) + " of a " +
                            (shape.dimensions.size() > 1 ? "hierarchical" : "ring") + " algorithm"};
}

// Returns why an algorithm does not share copies inside nodes.
std::string why_not_shared(const CollectiveTask& task) {
  if (task.matrix == nullptr || task.matrix->sharing == NodeSharing::kNone) return "";
  return "; the members do not fill the nodes of the matrix alike, so no copy is shared in them";
}

Bid bid_relay(const CollectiveTask& task, NodeSharing sharing, std::string why) {
  if (task.matrix == nullptr || task.matrix->sharing != sharing) return std::nullopt;
  return AutoBid{0, std::move(why)};
}

}  // namespace

Bid bid_never(const CollectiveTask&, const GroupShape&) {
  return std::nullopt;
}

Bid bid_ring(const CollectiveTask& task, const GroupShape& shape) {
  if (shape.dimensions.size() > 1 || shape.is_torus()) return std::nullopt;
  std::string why = "the group has no levels and fills no box of torus axes";
  why += shape.tree.nodes.empty() || !shape.ways.empty()
             ? ", so one ring goes through all members"
             : "; one ring already uses every port fully";
  return AutoBid{cost_of_rings(task, shape).bytes(), std::move(why)};
}

// In bytes over the narrowest link, like those of rings. What the schedule reaches is close to the
// bound of the ports, and a round hands on one chunk a slot.
Bid bid_packed_trees(const CollectiveTask& task, const GroupShape& shape) {
  const std::uint32_t n = shape.members();
  const double share =
      std::ranges::min(shape.ways.links).value() / least_ports(shape.ways, n).value();
  const RingCost ring = cost_of_rings(task, shape);
  const std::int64_t passes = task.op == CollectiveOp::kAllReduce ? 2 : 1;
  const auto rounds = static_cast<std::int64_t>(std::ceil(share * (n - 1)));
  return AutoBid{
      passes * rounds * kTripBytes + std::llround(share * static_cast<double>(ring.sent)),
      "members are linked directly: trees packed onto all of their links share the data"};
}

// A byte less than one ring, which it betters wherever it can run.
Bid bid_rotated_rings(const CollectiveTask& task, const GroupShape& shape) {
  if (shape.uneven_nodes.empty() || shape.members() > kMostInRotatedRings) return std::nullopt;
  return AutoBid{cost_of_rings(task, shape).bytes() - 1,
                 "the members lie unevenly in their nodes: a ring for each card of the smallest"};
}

Bid bid_hierarchical(const CollectiveTask& task, const GroupShape& shape) {
  if (shape.is_torus()) return std::nullopt;
  if (shape.has_torus_axis()) {
    return AutoBid{
        0, "the group spans slices: all links of the torus in a slice, then between slices"};
  }
  return AutoBid{cost_of_rings(task, shape).bytes(),
                 "the group spans several levels: most of the data stay inside the inner ones"};
}

// Where axes are of unequal width, the narrowest one takes as long as all of them would, and trees
// may be better (ways).
Bid bid_multi_axis(const CollectiveTask& task, const GroupShape& shape) {
  std::int64_t bytes = 0;
  if (!shape.ways.empty()) {
    const std::int64_t passes = task.op == CollectiveOp::kAllReduce ? 2 : 1;
    std::int64_t ports = 0;
    for (const GroupDimension& axis : shape.dimensions) {
      bytes += passes * kTripBytes * (axis.wraps ? axis.size / 2 : axis.size - 1);
      ports += axis.wraps ? 2 : 1;
    }
    bytes += cost_of_rings(task, shape).sent / ports;
  }
  return AutoBid{bytes,
                 shape.dimensions.size() > 1
                     ? "the group fills a box of torus axes: rotated axis orders keep all links "
                       "busy"
                     : "the group is an axis of a torus: both ways of its links work at once"};
}

Bid bid_halving_doubling(const CollectiveTask& task, const GroupShape& shape) {
  if (!std::has_single_bit(shape.members())) return std::nullopt;
  const std::int64_t passes = task.op == CollectiveOp::kAllReduce ? 2 : 1;
  return bid_few_rounds(task, shape, passes * rounds_of_doubling(shape.members()),
                        cost_of_rings(task, shape).sent);
}

Bid bid_recursive_doubling(const CollectiveTask& task, const GroupShape& shape) {
  if (task.op != CollectiveOp::kAllGather) return std::nullopt;
  return bid_few_rounds(task, shape, rounds_of_doubling(shape.members()),
                        cost_of_rings(task, shape).sent);
}

Bid bid_bruck(const CollectiveTask& task, const GroupShape& shape) {
  if (std::has_single_bit(shape.members())) return std::nullopt;
  return bid_few_rounds(task, shape, rounds_of_doubling(shape.members()),
                        cost_of_rings(task, shape).sent);
}

Bid bid_double_binary_tree(const CollectiveTask& task, const GroupShape& shape) {
  const std::uint32_t n = shape.members();
  if (std::has_single_bit(n)) return std::nullopt;
  const std::uint32_t in_node = shape.dimensions.size() > 1 ? shape.dimensions.front().size : 1;
  const std::uint32_t rounds =
      in_node > 1 ? 2 * (in_node - 1 + rounds_of_doubling(n / in_node))
                  : 3 * (pipeline_chunks(task.bytes / 2, n) + 2 * rounds_of_doubling(n) - 1);
  return bid_few_rounds(task, shape, rounds, 2 * task.bytes.value());
}

Bid bid_direct(const CollectiveTask& task, const GroupShape& shape) {
  const std::int64_t bytes = kTripBytes + task.bytes.value();
  switch (task.op) {
    case CollectiveOp::kAllToAll:
      if (shape.is_torus()) {
        return AutoBid{bytes, "shards are unequal, so every member sends straight to all" +
                                  why_not_shared(task)};
      }
      if (task.experts && task.experts->expert_chips > 0) {
        return AutoBid{bytes,
                       "senders and receivers are different members, which keep all of their "
                       "messages in flight"};
      }
      if (shape.members() > kDirectMembers) return std::nullopt;
      return AutoBid{bytes, "on switches, up to " + std::to_string(kDirectMembers) +
                                " members send everything at once" + why_not_shared(task)};
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
      return AutoBid{bytes, shape.is_torus()
                                ? "along one axis straight messages fill both ports of the root"
                                : "the root's port is the limit, so relays gain nothing"};
    case CollectiveOp::kSendReceive:
    case CollectiveOp::kPermute:
      return AutoBid{bytes, "every member has one message, which goes straight there"};
    default:
      return std::nullopt;
  }
}

Bid bid_pairwise(const CollectiveTask& task, const GroupShape& shape) {
  if (task.op != CollectiveOp::kAllToAll || shape.members() <= kDirectMembers) return std::nullopt;
  return AutoBid{shape.members() * kTripBytes + task.bytes.value(),
                 "with more than " + std::to_string(kDirectMembers) +
                     " members one partner at a time keeps few messages in flight" +
                     why_not_shared(task)};
}

Bid bid_torus_all_to_all(const CollectiveTask&, const GroupShape& shape) {
  return AutoBid{0, shape.twists()
                        ? "the group fills a twisted torus: hop by hop over all shortest "
                          "ways loads all links alike"
                        : "the group fills torus axes: hop by hop in rotated orders "
                          "keeps all links busy"};
}

Bid bid_node_forwarding(const CollectiveTask& task, const GroupShape&) {
  return bid_relay(task, NodeSharing::kToNode,
                   "members of a node share copies: each crosses to the node once");
}

Bid bid_pxn(const CollectiveTask& task, const GroupShape&) {
  return bid_relay(task, NodeSharing::kFromNode,
                   "members of a node share sums: each leaves the node once");
}

Bid bid_root_trees(const CollectiveTask&, const GroupShape& shape) {
  if (shape.dimensions.size() == 1) return std::nullopt;
  return AutoBid{0,
                 "the group fills torus axes: a tree from each port of the root keeps them busy"};
}

Bid bid_chain(const CollectiveTask& task, const GroupShape& shape) {
  const std::int64_t chunks = pipeline_chunks(task.bytes, shape.members());
  const std::int64_t rounds = shape.members() - 2 + chunks;
  return AutoBid{rounds * (kTripBytes + task.bytes.value() / chunks),
                 "bytes weigh more than trips at this size: a pipeline of " +
                     std::to_string(chunks) + " chunks sends them once"};
}

Bid bid_binomial_tree(const CollectiveTask& task, const GroupShape& shape) {
  if (task.op != CollectiveOp::kBroadcast && task.op != CollectiveOp::kReduce) return std::nullopt;
  const std::int64_t chunks = pipeline_chunks(task.bytes, shape.members());
  const std::int64_t doublings = rounds_of_doubling(shape.members());
  return AutoBid{doublings * (kTripBytes + task.bytes.value()),
                 "trips weigh more than bytes at this size: " + std::to_string(doublings) +
                     " rounds instead of the " + std::to_string(shape.members() - 2 + chunks) +
                     " of a chain"};
}

Bid bid_dissemination(const CollectiveTask&, const GroupShape&) {
  return AutoBid{0, "it takes ceil(log2 n) trips on any network"};
}

}  // namespace stepsim
