#include "sim/collectives/algorithm_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sim/collectives/algorithms/bruck.h"
#include "sim/collectives/algorithms/direct_rooted.h"
#include "sim/collectives/algorithms/dissemination.h"
#include "sim/collectives/algorithms/exchange.h"
#include "sim/collectives/algorithms/halving_doubling.h"
#include "sim/collectives/algorithms/node_relay.h"
#include "sim/collectives/algorithms/rotated_rings.h"
#include "sim/collectives/algorithms/rotation_shares.h"
#include "sim/collectives/algorithms/shift.h"
#include "sim/collectives/algorithms/torus/axis_rings.h"
#include "sim/collectives/algorithms/torus/multi_axis.h"
#include "sim/collectives/algorithms/torus/root_trees.h"
#include "sim/collectives/algorithms/torus/torus_all_to_all.h"
#include "sim/collectives/algorithms/torus/twisted_all_to_all.h"
#include "sim/collectives/algorithms/trees/binomial_tree.h"
#include "sim/collectives/algorithms/trees/chain.h"
#include "sim/collectives/algorithms/trees/double_binary_tree.h"
#include "sim/collectives/algorithms/trees/in_network.h"
#include "sim/collectives/algorithms/trees/packed_trees.h"
#include "sim/collectives/algorithms/trees/reduce_broadcast.h"
#include "sim/collectives/algorithms/trees/reduction_trees.h"
#include "sim/collectives/step_list.h"

namespace stepsim {
namespace {

using Made = std::unique_ptr<CollectiveAlgorithm>;
using Task = CollectiveTask;
using Shape = GroupShape;

// --- Operations ----------------------------------------------------------------------------------

constexpr OpSet kRingOps = {CollectiveOp::kAllReduce, CollectiveOp::kAllGather,
                            CollectiveOp::kReduceScatter};
constexpr OpSet kExchanges = {CollectiveOp::kAllToAll, CollectiveOp::kAllGather,
                              CollectiveOp::kReduceScatter};
constexpr OpSet kInSwitches = {CollectiveOp::kAllReduce,     CollectiveOp::kAllGather,
                               CollectiveOp::kReduceScatter, CollectiveOp::kBroadcast,
                               CollectiveOp::kReduce,        CollectiveOp::kBarrier};
constexpr OpSet kShardsOfRoot = {CollectiveOp::kGather, CollectiveOp::kScatter};

// --- Groups --------------------------------------------------------------------------------------

std::string any_group(CollectiveOp, const Shape&) {
  return "";
}

std::string box_of_axes(CollectiveOp, const Shape& shape) {
  return shape.is_torus() ? "" : "needs a group that fills a box of torus axes";
}

std::string levels(CollectiveOp, const Shape& shape) {
  return shape.dimensions.size() > 1 ? "" : "needs a group that fills a box of two or more levels";
}

std::string switched_levels(CollectiveOp, const Shape& shape) {
  return shape.dimensions.size() > 1 && !shape.has_torus_axis()
             ? ""
             : "needs a group that fills a box of several switched levels, a node and more";
}

std::string nodes_of_switched_levels(CollectiveOp op, const Shape& shape) {
  return shape.uneven_nodes.empty() ? switched_levels(op, shape) : "";
}

std::string one_switch(CollectiveOp, const Shape& shape) {
  if (shape.tree.nodes.size() == shape.members() + 1) return "";
  return "needs all members on one switch, but they are in different nodes, or their node has "
         "several switches or none";
}

std::string tree_of_switches(CollectiveOp, const Shape& shape) {
  return !shape.tree.nodes.empty() || !shape.rail_trees.empty()
             ? ""
             : "needs a tree of switches between the members, but their routes pass through other "
               "chips or separate on the way";
}

std::string switch_in_each_node(CollectiveOp, const Shape& shape) {
  return !shape.node_trees.empty() ? ""
                                   : "needs equally many members in each of several nodes, and one "
                                     "switch between those of a node";
}

std::string direct_links(CollectiveOp, const Shape& shape) {
  return !shape.ways.empty()
             ? ""
             : "needs three to 256 members of which some are linked directly, on a network that is "
               "no torus of equal links, whose widest link has at most eight times the bandwidth "
               "of "
               "the narrowest";
}

std::string power_of_two_unless_all_reduce(CollectiveOp op, const Shape& shape) {
  return op == CollectiveOp::kAllReduce || std::has_single_bit(shape.members())
             ? ""
             : "needs a power of two members for this operation, the group has " +
                   std::to_string(shape.members());
}

// --- Matrices ------------------------------------------------------------------------------------

std::string any_matrix(const ByteMatrix&, const Shape&) {
  return "";
}

std::string equal_shards(const ByteMatrix&, const Shape&) {
  return "sends equal shards, so it can't do an all-to-all with a matrix; use direct, pairwise";
}

// Members that are on one node in the matrix must be on one node of the shape.
std::string nodes_of_the_group(const ByteMatrix& matrix, const Shape& shape) {
  if (matrix.sharing == NodeSharing::kNone) return "";
  const std::uint32_t per_node = shape.node_size();
  bool same = matrix.nodes() * per_node == shape.members();
  for (std::uint32_t position = 0; position < shape.members(); ++position) {
    const std::uint32_t first = shape.order[position - position % per_node];
    same = same && matrix.node_of[shape.order[position]] == matrix.node_of[first];
  }
  return same ? "" : "needs the nodes within which the matrix shares data to be those of the group";
}

// --- What `auto` weighs --------------------------------------------------------------------------

Weighed never(const Task&, const Shape&) {
  return Weighed::kNo;
}

Weighed always(const Task&, const Shape&) {
  return Weighed::kYes;
}

Weighed off_torus(const Task&, const Shape& shape) {
  return shape.has_torus_axis() ? Weighed::kNo : Weighed::kYes;
}

// Slices of a torus are levels, too.
Weighed off_whole_torus(const Task&, const Shape& shape) {
  return shape.is_torus() ? Weighed::kNo : Weighed::kYes;
}

Weighed several_axes(const Task&, const Shape& shape) {
  return shape.dimensions.size() > 1 ? Weighed::kYes : Weighed::kNo;
}

// Not for all-gather and reduce-scatter, though nothing has fewer trips: no library sends so many
// messages at once for them. On a torus messages with equal shards go hop by hop.
Weighed direct_messages(const Task& task, const Shape& shape) {
  if (is_ring_op(task.op)) return Weighed::kNo;
  const bool by_hops =
      task.op == CollectiveOp::kAllToAll && shape.is_torus() && task.matrix == nullptr;
  return by_hops ? Weighed::kNo : Weighed::kYes;
}

Weighed relays(const Task& task, NodeSharing sharing) {
  const bool shared = task.matrix != nullptr && task.matrix->sharing == sharing;
  return shared ? Weighed::kAlone : Weighed::kNo;
}

Weighed copies_for_nodes(const Task& task, const Shape&) {
  return relays(task, NodeSharing::kToNode);
}

Weighed sums_of_nodes(const Task& task, const Shape&) {
  return relays(task, NodeSharing::kFromNode);
}

// --- Makers --------------------------------------------------------------------------------------

// Returns the members as one row, in the order in which they were given.
std::vector<std::uint32_t> as_given(const Shape& shape) {
  std::vector<std::uint32_t> order(shape.members());
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

template <typename Algorithm>
Made in_a_row(const Task& task, const Shape& shape) {
  return std::make_unique<Algorithm>(task, as_given(shape));
}

Made flat_rings(const Task& task, const Shape& shape, std::vector<AxisRingLane> lanes) {
  return std::make_unique<AxisRings>(
      task.op, Shape{.dimensions = {{.size = shape.members()}}, .order = as_given(shape)},
      std::move(lanes), task.bytes, task.element);
}

std::vector<std::uint32_t> innermost_first(const Shape& shape) {
  std::vector<std::uint32_t> order(shape.dimensions.size());
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

// Sorts axes by size, lines first, so that a torus takes the same time however it is turned.
void turn(std::span<std::uint32_t> axes, const Shape& shape) {
  std::ranges::stable_sort(axes, {}, [&](std::uint32_t axis) {
    return std::pair(shape.dimensions[axis].size, shape.dimensions[axis].wraps);
  });
}

// Makes every rotation of the torus axes, followed by the levels outside the torus.
Made rotated_axes(const Task& task, const Shape& shape) {
  std::vector<std::uint32_t> order = innermost_first(shape);
  const auto axes = std::stable_partition(order.begin(), order.end(), [&](std::uint32_t dimension) {
    return shape.dimensions[dimension].torus_axis;
  });
  turn({order.begin(), axes}, shape);
  std::vector<GroupDimension> torus;
  for (auto axis = order.begin(); axis != axes; ++axis) torus.push_back(shape.dimensions[*axis]);
  std::vector<MultiAxis::Rotation> rotations;
  for (const std::uint32_t share : rotation_shares(task.op, torus)) {
    rotations.push_back({.order = order, .share = share});
    std::rotate(order.begin(), order.begin() + 1, axes);
  }
  return std::make_unique<MultiAxis>(task, shape, std::move(rotations));
}

// Returns the number of chunks of overlapped levels: enough that the first and last phases are
// short relative to the whole, in messages of at least 64 KiB.
std::uint32_t level_chunks(Bytes bytes, const Shape& shape) {
  constexpr std::int64_t kSmallestMessage = 64 << 10;
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(bytes.value() / shape.members() / kSmallestMessage, 1, 32));
}

Made level_rings(const Task& task, const Shape& shape, std::uint32_t chunks, bool follow) {
  return std::make_unique<AxisRings>(
      task.op, shape, std::vector<AxisRingLane>(chunks, {innermost_first(shape), false}),
      task.bytes, task.element, follow);
}

Made hierarchical(const Task& task, const Shape& shape) {
  const bool slices = shape.has_torus_axis() && !shape.is_torus();
  return slices ? rotated_axes(task, shape) : level_rings(task, shape, 1, false);
}

Made direct(const Task& task, const Shape& shape) {
  switch (task.op) {
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
      return in_a_row<DirectRooted>(task, shape);
    case CollectiveOp::kSendReceive:
    case CollectiveOp::kPermute:
      return in_a_row<Shift>(task, shape);
    default:
      return std::make_unique<Exchange>(task, as_given(shape), true);
  }
}

// Over nodes there is a row for each card of a node: its ring, cut open at the root.
Made chain(const Task& task, const Shape& shape) {
  const bool over_nodes =
      !shape.uneven_nodes.empty() || (shape.dimensions.size() > 1 && !shape.has_torus_axis());
  std::vector<std::vector<std::uint32_t>> rows = {as_given(shape)};
  if (over_nodes) rows = rings_over_nodes(shape);
  for (std::vector<std::uint32_t>& row : rows) {
    std::rotate(row.begin(), std::ranges::find(row, task.root), row.end());
  }
  return std::make_unique<Chain>(task, std::move(rows));
}

Made torus_all_to_all(const Task& task, const Shape& shape) {
  if (shape.twists()) return std::make_unique<TwistedAllToAll>(task, shape);
  std::vector<std::uint32_t> axes = innermost_first(shape);
  turn(axes, shape);
  Shape turned{.dimensions = {}, .order = std::vector<std::uint32_t>(shape.members())};
  std::vector<std::uint32_t> stride(axes.size(), 1);  // of a given axis in the turned torus
  std::uint32_t next = 1;
  for (const std::uint32_t axis : axes) {
    turned.dimensions.push_back(shape.dimensions[axis]);
    stride[axis] = next;
    next *= shape.dimensions[axis].size;
  }
  for (std::uint32_t position = 0; position < shape.members(); ++position) {
    std::uint32_t left = position;
    std::uint32_t to = 0;
    for (std::size_t axis = 0; axis < stride.size(); ++axis) {
      to += left % shape.dimensions[axis].size * stride[axis];
      left /= shape.dimensions[axis].size;
    }
    turned.order[to] = shape.order[position];
  }
  return std::make_unique<TorusAllToAll>(task, turned);
}

Made double_binary_tree(const Task& task, const Shape& shape) {
  if (switched_levels(task.op, shape).empty() && shape.node_size() > 1) {
    return std::make_unique<InNetwork>(task, shape, binary_trees(shape, InsideNode::kChain), false);
  }
  return in_a_row<DoubleBinaryTree>(task, shape);
}

Made in_switches(const Task& task, const Shape& shape) {
  return std::make_unique<InNetwork>(
      task, shape, shape.tree.nodes.empty() ? tree_a_rail(shape) : std::vector{one_tree(shape)},
      true);
}

// --- The table -----------------------------------------------------------------------------------

constexpr auto kRows = std::to_array<AlgorithmRow>({
    // One ring through all members, in one direction.
    {.choice = AlgorithmChoice::kRing,
     .name = "ring",
     .ops = kRingOps,
     .misfit = any_group,
     .matrix_misfit = any_matrix,
     .weighed = off_torus,
     .make =
         [](const Task& task, const Shape& shape) {
           return flat_rings(task, shape, {{{0}, false}});
         }},
    // Two rings in opposite directions, half of the data each.
    {.choice = AlgorithmChoice::kBidirectionalRing,
     .name = "bidirectional-ring",
     .ops = kRingOps,
     .misfit = any_group,
     .matrix_misfit = any_matrix,
     .weighed = never,
     .make =
         [](const Task& task, const Shape& shape) {
           return flat_rings(task, shape, {{{0}, false}, {{0}, true}});
         }},
    // Level by level: inside the node, then across.
    {.choice = AlgorithmChoice::kHierarchical,
     .name = "hierarchical",
     .ops = kRingOps,
     .misfit = levels,
     .matrix_misfit = any_matrix,
     .weighed = off_whole_torus,
     .make = hierarchical},
    // Torus axes in rotated orders and both directions at once.
    {.choice = AlgorithmChoice::kMultiAxis,
     .name = "multi-axis",
     .ops = kRingOps,
     .misfit = box_of_axes,
     .matrix_misfit = any_matrix,
     .weighed = always,
     .make = rotated_axes},
    // Torus axes one after another, both directions (naive).
    {.choice = AlgorithmChoice::kAxisAfterAxis,
     .name = "axis-after-axis",
     .ops = kRingOps,
     .misfit = box_of_axes,
     .matrix_misfit = any_matrix,
     .weighed = never,
     .make = [](const Task& task, const Shape& shape) -> Made {
       return std::make_unique<MultiAxis>(
           task, shape, std::vector<MultiAxis::Rotation>{{.order = innermost_first(shape)}});
     }},
    // Every member exchanges with every other one (or with the root) at once.
    {.choice = AlgorithmChoice::kDirect,
     .name = "direct",
     .ops = {CollectiveOp::kAllToAll, CollectiveOp::kAllGather, CollectiveOp::kReduceScatter,
             CollectiveOp::kGather, CollectiveOp::kScatter, CollectiveOp::kSendReceive,
             CollectiveOp::kPermute},
     .misfit = any_group,
     .matrix_misfit = any_matrix,
     .weighed = direct_messages,
     .make = direct},
    // n - 1 exchanges, one partner at a time.
    {.choice = AlgorithmChoice::kPairwise,
     .name = "pairwise",
     .ops = kExchanges,
     .misfit = any_group,
     .matrix_misfit = any_matrix,
     .weighed = never,
     .make = [](const Task& task, const Shape& shape) -> Made {
       return std::make_unique<Exchange>(task, as_given(shape), false);
     }},
    // Hop by hop along the axes of a torus, in rotated orders.
    {.choice = AlgorithmChoice::kTorusAllToAll,
     .name = "torus",
     .ops = {CollectiveOp::kAllToAll},
     .misfit = box_of_axes,
     .matrix_misfit = equal_shards,
     .weighed = always,
     .make = torus_all_to_all},
    // A tree from each port of the root, over the links of a torus.
    {.choice = AlgorithmChoice::kRootTrees,
     .name = "root-trees",
     .ops = kShardsOfRoot,
     .misfit = box_of_axes,
     .matrix_misfit = any_matrix,
     .weighed = several_axes,
     .make = [](const Task& task, const Shape& shape) -> Made {
       return std::make_unique<RootTrees>(task, shape);
     }},
    // log n rounds from the root or to it.
    {.choice = AlgorithmChoice::kBinomialTree,
     .name = "binomial-tree",
     .ops = {CollectiveOp::kBroadcast, CollectiveOp::kReduce, CollectiveOp::kGather,
             CollectiveOp::kScatter},
     .misfit = any_group,
     .matrix_misfit = any_matrix,
     .weighed = always,
     .make = in_a_row<BinomialTree>},
    // The root sends to the next member, which sends to the next, pipelined in chunks.
    {.choice = AlgorithmChoice::kChain,
     .name = "chain",
     .ops = {CollectiveOp::kBroadcast, CollectiveOp::kReduce},
     .misfit = any_group,
     .matrix_misfit = any_matrix,
     .weighed = always,
     .make = chain},
    // Two trees, half of the data each, pipelined in chunks.
    {.choice = AlgorithmChoice::kDoubleBinaryTree,
     .name = "double-binary-tree",
     .ops = {CollectiveOp::kAllReduce},
     .misfit = any_group,
     .matrix_misfit = any_matrix,
     .weighed = off_torus,
     .make = double_binary_tree},
    // Recursive halving, then recursive doubling.
    {.choice = AlgorithmChoice::kHalvingDoubling,
     .name = "halving-doubling",
     .ops = {CollectiveOp::kAllReduce, CollectiveOp::kReduceScatter},
     .misfit = power_of_two_unless_all_reduce,
     .matrix_misfit = any_matrix,
     .weighed = always,
     .make = [](const Task& task, const Shape& shape) -> Made {
       return std::make_unique<HalvingDoubling>(task, as_given(shape), false);
     }},
    // Each member exchanges everything it has with partners at distance 1, 2, 4, ...
    {.choice = AlgorithmChoice::kRecursiveDoubling,
     .name = "recursive-doubling",
     .ops = {CollectiveOp::kAllReduce, CollectiveOp::kAllGather},
     .misfit = power_of_two_unless_all_reduce,
     .matrix_misfit = any_matrix,
     .weighed = always,
     .make = [](const Task& task, const Shape& shape) -> Made {
       const bool whole = task.op == CollectiveOp::kAllReduce;
       return std::make_unique<HalvingDoubling>(task, as_given(shape), whole);
     }},
    // ceil(log2 n) rounds for any n.
    {.choice = AlgorithmChoice::kBruck,
     .name = "bruck",
     .ops = kRingOps,
     .misfit = any_group,
     .matrix_misfit = any_matrix,
     .weighed = always,
     .make = in_a_row<Bruck>},
    // Every member sends to the root, which sends back (naive).
    {.choice = AlgorithmChoice::kReduceBroadcast,
     .name = "reduce-broadcast",
     .ops = {CollectiveOp::kAllReduce},
     .misfit = any_group,
     .matrix_misfit = any_matrix,
     .weighed = never,
     .make = in_a_row<ReduceBroadcast>},
    // Each member sends a word to the members 1, 2, 4, ... places on.
    {.choice = AlgorithmChoice::kDissemination,
     .name = "dissemination",
     .ops = {CollectiveOp::kBarrier},
     .misfit = any_group,
     .matrix_misfit = any_matrix,
     .weighed = always,
     .make = in_a_row<Dissemination>},
    // A ring for each network card of a node.
    {.choice = AlgorithmChoice::kRotatedRings,
     .name = "rotated-rings",
     .ops = kRingOps,
     .misfit = nodes_of_switched_levels,
     .matrix_misfit = any_matrix,
     .weighed = off_torus,
     .make = [](const Task& task, const Shape& shape) -> Made {
       return std::make_unique<RotatedRings>(task, shape);
     }},
    // Hierarchical in chunks: one level works on a chunk while the next level works on another.
    {.choice = AlgorithmChoice::kOverlappedLevels,
     .name = "overlapped-levels",
     .ops = kRingOps,
     .misfit = switched_levels,
     .matrix_misfit = any_matrix,
     .weighed = never,
     .make =
         [](const Task& task,
            const Shape&
                shape) { return level_rings(task, shape, level_chunks(task.bytes, shape), true); }},
    // Inside the node to the destination's rail, then over the rail.
    {.choice = AlgorithmChoice::kPxn,
     .name = "pxn",
     .ops = {CollectiveOp::kAllToAll},
     .misfit = switched_levels,
     .matrix_misfit = nodes_of_the_group,
     .weighed = sums_of_nodes,
     .make = [](const Task& task, const Shape& shape) -> Made {
       return std::make_unique<NodeRelay>(task, shape, FirstLeg::kNode);
     }},
    // Over the rail to the destination's node, then inside it.
    {.choice = AlgorithmChoice::kNodeForwarding,
     .name = "node-forwarding",
     .ops = {CollectiveOp::kAllToAll},
     .misfit = switched_levels,
     .matrix_misfit = nodes_of_the_group,
     .weighed = copies_for_nodes,
     .make = [](const Task& task, const Shape& shape) -> Made {
       return std::make_unique<NodeRelay>(task, shape, FirstLeg::kRail);
     }},
    // The one switch between all members adds and copies.
    {.choice = AlgorithmChoice::kNvls,
     .name = "nvls",
     .ops = kInSwitches,
     .misfit = one_switch,
     .matrix_misfit = any_matrix,
     .weighed = never,
     .make = in_switches},
    // A tree of switches adds and copies, or one a rail.
    {.choice = AlgorithmChoice::kSharp,
     .name = "sharp",
     .ops = kInSwitches,
     .misfit = tree_of_switches,
     .matrix_misfit = any_matrix,
     .weighed = never,
     .make = in_switches},
    // The switch in each node adds and copies, trees of members join the nodes.
    {.choice = AlgorithmChoice::kNvlsTree,
     .name = "nvls-tree",
     .ops = {CollectiveOp::kAllReduce},
     .misfit = switch_in_each_node,
     .matrix_misfit = any_matrix,
     .weighed = never,
     .make = [](const Task& task, const Shape& shape) -> Made {
       return std::make_unique<InNetwork>(task, shape, binary_trees(shape, InsideNode::kSwitch),
                                          false);
     }},
    // Trees over all links between members that are linked directly.
    {.choice = AlgorithmChoice::kPackedTrees,
     .name = "packed-trees",
     .ops = kRingOps,
     .misfit = direct_links,
     .matrix_misfit = any_matrix,
     .weighed = always,
     .make = [](const Task& task, const Shape& shape) -> Made {
       return std::make_unique<PackedTreesCollective>(task, shape);
     }},
    // Steps that a user has written, for one operation and number of members.
    {.choice = AlgorithmChoice::kCustom,
     .name = "custom",
     .ops = {CollectiveOp::kAllReduce, CollectiveOp::kAllGather, CollectiveOp::kReduceScatter,
             CollectiveOp::kAllToAll, CollectiveOp::kBroadcast, CollectiveOp::kReduce,
             CollectiveOp::kGather, CollectiveOp::kScatter, CollectiveOp::kBarrier,
             CollectiveOp::kSendReceive, CollectiveOp::kPermute},
     .misfit = any_group,
     .matrix_misfit = any_matrix,
     .weighed = never,
     .make = [](const Task& task, [[maybe_unused]] const Shape& shape) -> Made {
       assert(task.steps != nullptr && task.steps->op == task.op &&
              task.steps->members == shape.members());
       return std::make_unique<ListedSteps>(task, *task.steps);
     }},
});

constexpr std::size_t kEnumerators = static_cast<std::size_t>(AlgorithmChoice::kCustom);

constexpr bool begins_with_the_enumerators() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const std::size_t number = i < kEnumerators ? i + 1 : 0;
    if (kRows[i].choice != AlgorithmChoice(number)) return false;
  }
  return kRows.size() >= kEnumerators;
}
static_assert(begins_with_the_enumerators(), "first a row for each enumerator, in their order");

constexpr auto kAlgorithmTable = [] {
  auto rows = kRows;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].choice = AlgorithmChoice(i + 1);
  return rows;
}();

}  // namespace

std::span<const AlgorithmRow> algorithm_table() {
  return kAlgorithmTable;
}

std::vector<AlgorithmChoice> named_algorithms() {
  std::vector<AlgorithmChoice> named = {AlgorithmChoice::kAuto};
  for (const AlgorithmRow& row : kAlgorithmTable) {
    if (row.choice != AlgorithmChoice::kCustom) named.push_back(row.choice);
  }
  return named;
}

const AlgorithmRow& row_of(AlgorithmChoice choice) {
  assert(choice != AlgorithmChoice::kAuto);
  return kAlgorithmTable[static_cast<std::size_t>(choice) - 1];
}

std::string_view name_of(AlgorithmChoice choice) {
  return choice == AlgorithmChoice::kAuto ? "auto" : row_of(choice).name;
}

}  // namespace stepsim
