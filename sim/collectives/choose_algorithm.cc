#include "sim/collectives/choose_algorithm.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>
#include <utility>

#include "sim/base/error.h"
#include "sim/collectives/algorithms/axis_rings.h"
#include "sim/collectives/algorithms/binomial_tree.h"
#include "sim/collectives/algorithms/bruck.h"
#include "sim/collectives/algorithms/chain.h"
#include "sim/collectives/algorithms/direct_rooted.h"
#include "sim/collectives/algorithms/dissemination.h"
#include "sim/collectives/algorithms/double_binary_tree.h"
#include "sim/collectives/algorithms/exchange.h"
#include "sim/collectives/algorithms/halving_doubling.h"
#include "sim/collectives/algorithms/in_network.h"
#include "sim/collectives/algorithms/multi_axis.h"
#include "sim/collectives/algorithms/node_relay.h"
#include "sim/collectives/algorithms/reduce_broadcast.h"
#include "sim/collectives/algorithms/reduction_trees.h"
#include "sim/collectives/algorithms/rotated_rings.h"
#include "sim/collectives/algorithms/shift.h"
#include "sim/collectives/algorithms/torus_all_to_all.h"
#include "sim/collectives/step_list.h"

namespace stepsim {
namespace {

constexpr std::uint32_t kDirectMembers = 64;  // auto sends all at once up to here

// --- Shapes --------------------------------------------------------------------------------------

// The same members in one dimension.
GroupShape flattened(const GroupShape& shape) {
  if (shape.dimensions.size() == 1) return shape;
  return {.dimensions = {{.size = shape.members()}}, .order = shape.order};
}

std::vector<std::uint32_t> innermost_first(const GroupShape& shape) {
  std::vector<std::uint32_t> order(shape.dimensions.size());
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

// Every rotation of the torus axes, and behind them the levels outside the torus.
std::vector<std::vector<std::uint32_t>> rotated_orders(const GroupShape& shape) {
  std::vector<std::uint32_t> order = innermost_first(shape);
  const auto axes = std::stable_partition(order.begin(), order.end(), [&](std::uint32_t dimension) {
    return shape.dimensions[dimension].torus_axis;
  });
  std::vector<std::vector<std::uint32_t>> orders;
  for (auto rotation = order.begin(); rotation != axes; ++rotation) {
    orders.push_back(order);
    std::rotate(order.begin(), order.begin() + 1, axes);
  }
  return orders;
}

// Chunks of overlapped levels: enough that the phases of the first and last are little beside the
// whole, in messages of at least 64 KiB.
std::uint32_t level_chunks(Bytes bytes, const GroupShape& shape) {
  constexpr std::int64_t kSmallestMessage = 64 << 10;
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(bytes.value() / shape.members() / kSmallestMessage, 1, 32));
}

bool is_torus(const GroupShape& shape) {
  return std::ranges::all_of(shape.dimensions,
                             [](const GroupDimension& dimension) { return dimension.torus_axis; });
}

bool has_torus_axis(const GroupShape& shape) {
  return std::ranges::any_of(shape.dimensions,
                             [](const GroupDimension& dimension) { return dimension.torus_axis; });
}

// --- What can run --------------------------------------------------------------------------------

bool moves_whole_from_or_to_root(CollectiveOp op) {
  return op == CollectiveOp::kBroadcast || op == CollectiveOp::kReduce;
}

bool does(AlgorithmChoice choice, CollectiveOp op) {
  const bool shards_of_root = op == CollectiveOp::kGather || op == CollectiveOp::kScatter;
  const bool exchange = op == CollectiveOp::kAllToAll || op == CollectiveOp::kAllGather ||
                        op == CollectiveOp::kReduceScatter;
  switch (choice) {
    case AlgorithmChoice::kAuto:
      return true;
    case AlgorithmChoice::kRing:
    case AlgorithmChoice::kBidirectionalRing:
    case AlgorithmChoice::kHierarchical:
    case AlgorithmChoice::kMultiAxis:
    case AlgorithmChoice::kAxisAfterAxis:
      return is_ring_op(op);
    case AlgorithmChoice::kDirect:
      return exchange || shards_of_root || op == CollectiveOp::kSendReceive ||
             op == CollectiveOp::kPermute;
    case AlgorithmChoice::kPairwise:
      return exchange;
    case AlgorithmChoice::kTorusAllToAll:
      return op == CollectiveOp::kAllToAll;
    case AlgorithmChoice::kChain:
      return moves_whole_from_or_to_root(op);
    case AlgorithmChoice::kBinomialTree:
      return moves_whole_from_or_to_root(op) || shards_of_root;
    case AlgorithmChoice::kHalvingDoubling:
      return op == CollectiveOp::kAllReduce || op == CollectiveOp::kReduceScatter;
    case AlgorithmChoice::kRecursiveDoubling:
      return op == CollectiveOp::kAllReduce || op == CollectiveOp::kAllGather;
    case AlgorithmChoice::kBruck:
      return op == CollectiveOp::kAllGather;
    case AlgorithmChoice::kDoubleBinaryTree:
    case AlgorithmChoice::kReduceBroadcast:
    case AlgorithmChoice::kNvlsTree:
      return op == CollectiveOp::kAllReduce;
    case AlgorithmChoice::kDissemination:
      return op == CollectiveOp::kBarrier;
    case AlgorithmChoice::kRotatedRings:
    case AlgorithmChoice::kOverlappedLevels:
      return is_ring_op(op);
    case AlgorithmChoice::kPxn:
    case AlgorithmChoice::kNodeForwarding:
      return op == CollectiveOp::kAllToAll;
    case AlgorithmChoice::kNvls:
    case AlgorithmChoice::kSharp:
      return is_ring_op(op) || moves_whole_from_or_to_root(op) || op == CollectiveOp::kBarrier;
    case AlgorithmChoice::kCustom:
      return true;
  }
  return false;
}

// What is wrong with the group; empty: nothing.
std::string misfit(CollectiveOp op, AlgorithmChoice choice, const GroupShape& shape) {
  switch (choice) {
    case AlgorithmChoice::kMultiAxis:
    case AlgorithmChoice::kAxisAfterAxis:
    case AlgorithmChoice::kTorusAllToAll:
      return is_torus(shape) ? "" : "needs a group that fills a box of torus axes";
    case AlgorithmChoice::kHierarchical:
      return shape.dimensions.size() > 1 ? ""
                                         : "needs a group that fills a box of two or more levels";
    case AlgorithmChoice::kOverlappedLevels:
    case AlgorithmChoice::kRotatedRings:
    case AlgorithmChoice::kPxn:
    case AlgorithmChoice::kNodeForwarding:
      return shape.dimensions.size() > 1 && !has_torus_axis(shape)
                 ? ""
                 : "needs a group that fills a box of several switched levels, a node and more";
    case AlgorithmChoice::kNvls:
      if (shape.tree.nodes.size() == shape.members() + 1) return "";
      return "needs all members on one switch, and these are not: they stand in different nodes, "
             "or their node has several switches or none";
    case AlgorithmChoice::kSharp:
      return !shape.tree.nodes.empty() || !shape.rail_trees.empty()
                 ? ""
                 : "needs a tree of switches between the members, and their routes pass through "
                   "other chips or part on the way";
    case AlgorithmChoice::kNvlsTree:
      return !shape.node_trees.empty()
                 ? ""
                 : "needs members that fill several nodes alike, with one switch between those of "
                   "each node";
    case AlgorithmChoice::kHalvingDoubling:
    case AlgorithmChoice::kRecursiveDoubling:
      return op == CollectiveOp::kAllReduce || std::has_single_bit(shape.members())
                 ? ""
                 : "needs a power of two members for this operation, the group has " +
                       std::to_string(shape.members());
    default:
      return "";
  }
}

// --- Auto ----------------------------------------------------------------------------------------

AlgorithmChoice by_shape(const GroupShape& shape) {
  if (is_torus(shape)) return AlgorithmChoice::kMultiAxis;
  return shape.dimensions.size() > 1 ? AlgorithmChoice::kHierarchical : AlgorithmChoice::kRing;
}

std::string why_shape(AlgorithmChoice choice, const GroupShape& shape) {
  switch (choice) {
    case AlgorithmChoice::kMultiAxis:
      return shape.dimensions.size() > 1
                 ? "the group fills a box of torus axes: rotated axis orders keep all links busy"
                 : "the group is an axis of a torus: both ways of its links work at once";
    case AlgorithmChoice::kHierarchical:
      return has_torus_axis(shape)
                 ? "the group spans slices: all links of the torus in a slice, then between slices"
                 : "the group spans several levels: most of the data stay inside the inner ones";
    default:
      return "no levels and no box of torus axes: one ring already fills every port";
  }
}

// Estimates are in bytes: kTripBytes a round, and what the busiest port sends.
ChosenAlgorithm resolve_ring_op(CollectiveOp op, const GroupShape& shape, Bytes bytes) {
  const AlgorithmChoice rule = by_shape(shape);
  ChosenAlgorithm result{rule, why_shape(rule, shape)};
  if (has_torus_axis(shape)) return result;
  const std::uint32_t n = shape.members();
  const std::int64_t passes = op == CollectiveOp::kAllReduce ? 2 : 1;
  std::int64_t rounds = 0;
  for (const GroupDimension& dimension : shape.dimensions) rounds += passes * (dimension.size - 1);
  const std::int64_t sent = passes * (bytes.value() - bytes.value() / n);
  if (rounds * kTripBytes <= sent) return result;

  const std::int64_t doublings = rounds_of_doubling(n);
  AlgorithmChoice other = rule;
  std::int64_t other_rounds = passes * doublings;
  std::int64_t other_sent = sent;
  if (op == CollectiveOp::kAllGather) {
    other = std::has_single_bit(n) ? AlgorithmChoice::kRecursiveDoubling : AlgorithmChoice::kBruck;
  } else if (std::has_single_bit(n)) {
    other = AlgorithmChoice::kHalvingDoubling;
  } else if (op == CollectiveOp::kAllReduce) {
    other = AlgorithmChoice::kDoubleBinaryTree;
    const std::uint32_t in_node = shape.dimensions.size() > 1 ? shape.dimensions.front().size : 1;
    other_rounds = in_node > 1 ? 2 * (in_node - 1 + rounds_of_doubling(n / in_node))
                               : 3 * (pipeline_chunks(bytes / 2, n) + 2 * doublings - 1);
    other_sent = 2 * bytes.value();
  }
  if (other == rule || other_rounds * kTripBytes + other_sent >= rounds * kTripBytes + sent) {
    return result;
  }
  return {other, "trips weigh more than bytes at this size: " + std::to_string(other_rounds) +
                     " rounds instead of the " + std::to_string(rounds) + " of a " +
                     std::string(name_of(rule)) + " algorithm"};
}

ChosenAlgorithm resolve_chain_or_tree(const GroupShape& shape, Bytes bytes) {
  const std::uint32_t n = shape.members();
  const std::int64_t chunks = pipeline_chunks(bytes, n);
  const std::int64_t rounds = n - 2 + chunks;
  const std::int64_t chain = rounds * (kTripBytes + bytes.value() / chunks);
  const std::int64_t doublings = rounds_of_doubling(n);
  const std::int64_t tree = doublings * (kTripBytes + bytes.value());
  if (chain < tree) {
    return {AlgorithmChoice::kChain, "bytes weigh more than trips at this size: a pipeline of " +
                                         std::to_string(chunks) + " chunks sends them once"};
  }
  return {AlgorithmChoice::kBinomialTree,
          "trips weigh more than bytes at this size: " + std::to_string(doublings) +
              " rounds instead of the " + std::to_string(rounds) + " of a chain"};
}

ChosenAlgorithm resolve_all_to_all(const GroupShape& shape) {
  if (is_torus(shape)) {
    return {AlgorithmChoice::kTorusAllToAll,
            "the group fills torus axes: hop by hop in rotated orders keeps all links busy"};
  }
  if (shape.members() <= kDirectMembers) {
    return {AlgorithmChoice::kDirect, "on switches, up to " + std::to_string(kDirectMembers) +
                                          " members send everything at once"};
  }
  return {AlgorithmChoice::kPairwise, "with more than " + std::to_string(kDirectMembers) +
                                          " members one partner at a time keeps few messages "
                                          "in flight"};
}

// --- Ragged --------------------------------------------------------------------------------------

// Whether members that the matrix has on one node are on one node of the shape.
bool same_nodes(const ByteMatrix& matrix, const GroupShape& shape) {
  const std::uint32_t per_node = shape.dimensions.front().size;
  for (std::uint32_t position = 0; position < shape.members(); ++position) {
    const std::uint32_t first = shape.order[position - position % per_node];
    if (matrix.node_of[shape.order[position]] != matrix.node_of[first]) return false;
  }
  return matrix.nodes() * per_node == shape.members();
}

// What is wrong with an all-to-all by this matrix; empty: nothing.
std::string matrix_misfit(const CollectiveTask& task, AlgorithmChoice choice,
                          const GroupShape& shape) {
  if (task.matrix == nullptr) return "";
  const bool relays = choice == AlgorithmChoice::kPxn || choice == AlgorithmChoice::kNodeForwarding;
  if (relays && task.matrix->sharing != NodeSharing::kNone && !same_nodes(*task.matrix, shape)) {
    return "needs the nodes within which the matrix shares data to be those of the group";
  }
  if (choice != AlgorithmChoice::kTorusAllToAll) return "";
  return "sends equal shards and can't do an all-to-all by a matrix; there are: direct, pairwise";
}

}  // namespace

std::vector<AlgorithmChoice> algorithms_for(CollectiveOp op, const GroupShape& shape) {
  std::vector<AlgorithmChoice> result;
  for (const AlgorithmChoice choice : kAlgorithmChoices) {
    const bool names_one = choice != AlgorithmChoice::kAuto && choice != AlgorithmChoice::kCustom;
    if (names_one && does(choice, op) && misfit(op, choice, shape).empty()) {
      result.push_back(choice);
    }
  }
  return result;
}

std::string refusal(CollectiveOp op, AlgorithmChoice choice, const GroupShape& shape) {
  std::string reason =
      does(choice, op) ? misfit(op, choice, shape) : "can't do " + std::string(name_of(op));
  if (reason.empty()) return reason;
  reason += "; in this group there are:";
  for (const AlgorithmChoice other : algorithms_for(op, shape)) {
    reason += (reason.back() == ':' ? " " : ", ") + std::string(name_of(other));
  }
  return reason;
}

ChosenAlgorithm resolve(CollectiveOp op, AlgorithmChoice choice, const GroupShape& shape,
                        Bytes bytes) {
  if (choice != AlgorithmChoice::kAuto) return {choice, "it was asked for"};
  switch (op) {
    case CollectiveOp::kAllReduce:
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter:
      return resolve_ring_op(op, shape, bytes);
    case CollectiveOp::kAllToAll:
      return resolve_all_to_all(shape);
    case CollectiveOp::kBroadcast:
    case CollectiveOp::kReduce:
      return resolve_chain_or_tree(shape, bytes);
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
      return {AlgorithmChoice::kDirect, "the port of the root is the limit: relays gain nothing"};
    case CollectiveOp::kBarrier:
      return {AlgorithmChoice::kDissemination, "ceil(log2 n) trips, on any network"};
    case CollectiveOp::kSendReceive:
    case CollectiveOp::kPermute:
      break;
  }
  return {AlgorithmChoice::kDirect, "every member has one message, which goes straight there"};
}

ChosenAlgorithm resolve(const CollectiveTask& task, AlgorithmChoice choice,
                        const GroupShape& shape) {
  ChosenAlgorithm chosen = resolve(task.op, choice, shape, task.bytes);
  if (choice == AlgorithmChoice::kAuto && task.matrix != nullptr &&
      chosen.choice == AlgorithmChoice::kTorusAllToAll) {
    return {AlgorithmChoice::kDirect, "shards are not equal: every member sends straight to all"};
  }
  return chosen;
}

std::unique_ptr<CollectiveAlgorithm> choose_algorithm(const CollectiveTask& task,
                                                      AlgorithmChoice choice,
                                                      const GroupShape& shape) {
  if (choice == AlgorithmChoice::kCustom) {
    assert(task.steps != nullptr && task.steps->op == task.op &&
           task.steps->members == shape.members());
  }
  if (const std::string reason = refusal(task.op, choice, shape); !reason.empty()) {
    throw ConfigError({{"algorithm", std::string(name_of(choice)) + " " + reason}});
  }
  auto rings = [&](GroupShape over, std::vector<AxisRingLane> lanes) {
    return std::make_unique<AxisRings>(task.op, std::move(over), std::move(lanes), task.bytes,
                                       task.element);
  };
  const std::vector<std::uint32_t>& order = shape.order;
  const AlgorithmChoice chosen = resolve(task, choice, shape).choice;
  if (const std::string reason = matrix_misfit(task, chosen, shape); !reason.empty()) {
    throw ConfigError(
        std::vector<Problem>{{"algorithm", std::string(name_of(chosen)) + " " + reason}});
  }
  switch (chosen) {
    case AlgorithmChoice::kBidirectionalRing:
      return rings(flattened(shape), {{{0}, false}, {{0}, true}});
    case AlgorithmChoice::kHierarchical:
      if (has_torus_axis(shape) && !is_torus(shape)) {  // slices
        return std::make_unique<MultiAxis>(task, shape, rotated_orders(shape));
      }
      return rings(shape, {{innermost_first(shape), false}});
    case AlgorithmChoice::kMultiAxis:
      return std::make_unique<MultiAxis>(task, shape, rotated_orders(shape));
    case AlgorithmChoice::kAxisAfterAxis:
      return std::make_unique<MultiAxis>(
          task, shape, std::vector<std::vector<std::uint32_t>>{innermost_first(shape)});
    case AlgorithmChoice::kDirect:
      if (task.op == CollectiveOp::kGather || task.op == CollectiveOp::kScatter) {
        return std::make_unique<DirectRooted>(task, order);
      }
      if (task.op == CollectiveOp::kSendReceive || task.op == CollectiveOp::kPermute) {
        return std::make_unique<Shift>(task, order);
      }
      return std::make_unique<Exchange>(task, order, true);
    case AlgorithmChoice::kPairwise:
      return std::make_unique<Exchange>(task, order, false);
    case AlgorithmChoice::kTorusAllToAll:
      return std::make_unique<TorusAllToAll>(task, shape);
    case AlgorithmChoice::kChain:
      return std::make_unique<Chain>(task, order);
    case AlgorithmChoice::kBinomialTree:
      return std::make_unique<BinomialTree>(task, order);
    case AlgorithmChoice::kDoubleBinaryTree:
      if (shape.dimensions.size() > 1 && !has_torus_axis(shape)) {
        return std::make_unique<InNetwork>(task, shape, binary_trees(shape, InsideNode::kChain),
                                           false);
      }
      return std::make_unique<DoubleBinaryTree>(task, order);
    case AlgorithmChoice::kHalvingDoubling:
      return std::make_unique<HalvingDoubling>(task, order, false);
    case AlgorithmChoice::kRecursiveDoubling:
      return std::make_unique<HalvingDoubling>(task, order, task.op == CollectiveOp::kAllReduce);
    case AlgorithmChoice::kBruck:
      return std::make_unique<Bruck>(task, order);
    case AlgorithmChoice::kReduceBroadcast:
      return std::make_unique<ReduceBroadcast>(task, order);
    case AlgorithmChoice::kDissemination:
      return std::make_unique<Dissemination>(task, order);
    case AlgorithmChoice::kRotatedRings:
      return std::make_unique<RotatedRings>(task, shape);
    case AlgorithmChoice::kOverlappedLevels:
      return std::make_unique<AxisRings>(task.op, shape,
                                         std::vector<AxisRingLane>(level_chunks(task.bytes, shape),
                                                                   {innermost_first(shape), false}),
                                         task.bytes, task.element, true);
    case AlgorithmChoice::kPxn:
    case AlgorithmChoice::kNodeForwarding:
      return std::make_unique<NodeRelay>(
          task, shape, chosen == AlgorithmChoice::kPxn ? FirstLeg::kNode : FirstLeg::kRail);
    case AlgorithmChoice::kNvls:
    case AlgorithmChoice::kSharp:
      return std::make_unique<InNetwork>(
          task, shape, shape.tree.nodes.empty() ? tree_a_rail(shape) : std::vector{one_tree(shape)},
          true);
    case AlgorithmChoice::kNvlsTree:
      return std::make_unique<InNetwork>(task, shape, binary_trees(shape, InsideNode::kSwitch),
                                         false);
    case AlgorithmChoice::kCustom:
      return std::make_unique<ListedSteps>(task, *task.steps);
    case AlgorithmChoice::kAuto:
    case AlgorithmChoice::kRing:
      break;
  }
  return rings(flattened(shape), {{{0}, false}});
}

}  // namespace stepsim
