// Every algorithm, proven: symbolic contributions are moved through its messages, and each member
// must end with exactly what the operation promises, each contribution once. A new operation is
// proven as soon as it has its enumerator, a new algorithm as soon as it has its row in the table.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithm_table.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/collectives/parts.h"
#include "sim/collectives/proof.h"
#include "sim/collectives/round_ends.h"
#include "sim/collectives/step_list.h"

namespace stepsim {
namespace {

using Op = CollectiveOp;
using Choice = AlgorithmChoice;

GroupShape shape_of(std::vector<std::uint32_t> sizes, bool torus, bool wraps) {
  GroupShape shape;
  std::uint32_t members = 1;
  for (const std::uint32_t size : sizes) {
    shape.dimensions.push_back({.size = size, .torus_axis = torus, .wraps = torus && wraps});
    members *= size;
  }
  // Members are listed in another order than their positions.
  for (std::uint32_t p = 0; p < members; ++p) shape.order.push_back((p * 7 + 3) % members);
  if (std::gcd(members, 7U) != 1) std::iota(shape.order.begin(), shape.order.end(), 0U);
  return shape;
}

// The members below switches of `ports` ports each, those below others, up to one root.
GroupShape on_switches(GroupShape shape, std::uint32_t ports) {
  std::vector<std::uint32_t> level(shape.members());
  std::iota(level.begin(), level.end(), 0U);
  shape.tree.nodes.resize(shape.members());
  do {
    std::vector<std::uint32_t> above;
    for (std::uint32_t i = 0; i < level.size(); ++i) {
      if (i % ports == 0) {
        above.push_back(static_cast<std::uint32_t>(shape.tree.nodes.size()));
        shape.tree.nodes.push_back({.parent = above.back(), .up = {}, .down = {}});
      }
      shape.tree.nodes[level[i]] = {
          .parent = above.back(), .up = LinkId(2 * level[i]), .down = LinkId(2 * level[i] + 1)};
    }
    level = above;
  } while (level.size() > 1);
  return shape;
}

CollectiveTask task_of(Op op, const GroupShape& shape, std::int64_t elements) {
  return {.op = op,
          .bytes = op == Op::kBarrier ? Bytes(0) : Bytes(2 * elements),
          .element = Bytes(2),
          .root = shape.members() / 3,
          .shift = 3};
}

std::string text(const GroupShape& shape) {
  std::string result;
  for (const GroupDimension& dimension : shape.dimensions) {
    result += (result.empty() ? "" : "x") + std::to_string(dimension.size) +
              (dimension.wraps ? "w" : "") + (dimension.torus_axis ? "t" : "");
  }
  return result;
}

void prove(const CollectiveTask& task, Choice choice, const GroupShape& shape) {
  const std::string what = std::string(name_of(task.op)) + " " + std::string(name_of(choice)) +
                           " of " + text(shape) + ", " + std::to_string(task.bytes.value()) +
                           " bytes";
  SCOPED_TRACE(what);
  if (!refusal(task.op, choice, shape).empty()) {
    ASSERT_THROW(choose_algorithm(task, choice, shape), ConfigError);
    return;
  }
  const auto algorithm = choose_algorithm(task, choice, shape);
  ASSERT_EQ(algorithm->members(), shape.members());
  ASSERT_EQ(disproof(task, *algorithm).value_or(""), "");
}

void prove(Op op, Choice choice, const GroupShape& shape, std::int64_t elements) {
  prove(task_of(op, shape, elements), choice, shape);
}

void prove_all(const GroupShape& shape, std::int64_t elements) {
  for (const Op op : kCollectiveOps) {
    for (const Choice choice : named_algorithms()) {
      if (choice == Choice::kAuto) continue;
      prove(op, choice, shape, elements);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(CollectivesTest, PartsAreExactUpToTheLargestSizes) {
  constexpr std::int64_t kWhole = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t parts : {1, 7, 4096, 1'000'003}) {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < parts; ++i) sum += part(kWhole, i, parts);
    EXPECT_EQ(sum, kWhole);
    EXPECT_LE(part(kWhole, parts - 1, parts) - part(kWhole, 0, parts), 1);
  }
  EXPECT_EQ(part(10, 0, 4), 2);
  EXPECT_EQ(part(10, 1, 4), 3);
  EXPECT_EQ(rounded_share(10, 1, 4), 3) << "2.5";
  EXPECT_EQ(rounded_share(kWhole, 3, 3), kWhole);
  EXPECT_EQ(rounded_share(9'000'000'000'000'000'001, 1, 2), 4'500'000'000'000'000'001);
}

TEST(CollectivesTest, EveryMemberOfARowEndsWithWhatTheOperationPromises) {
  for (std::uint32_t n = 2; n <= 64; ++n) {
    prove_all(shape_of({n}, false, false), 12 * n);
    if (n <= 24 || n == 63 || n == 64) {
      prove_all(shape_of({n}, true, true), 12 * n + 5);
      prove_all(shape_of({n}, true, false), 7);
    }
  }
}

TEST(CollectivesTest, EveryMemberOfABoxEndsWithWhatTheOperationPromises) {
  for (const auto& sizes : std::vector<std::vector<std::uint32_t>>{
           {2, 2}, {2, 3}, {3, 5}, {8, 2}, {4, 4}, {4, 4, 2}, {2, 3, 4}, {3, 3, 3}, {2, 2, 2, 3}}) {
    for (const std::int64_t elements : {1, 960, 40'321}) {
      prove_all(shape_of(sizes, false, false), elements);
      prove_all(shape_of(sizes, true, true), elements);
      prove_all(shape_of(sizes, true, false), elements);
    }
  }
}

TEST(CollectivesTest, SwitchesThatAddAndCopyKeepThePromise) {
  for (std::uint32_t n = 2; n <= 64; n += n < 12 ? 1 : 13) {
    for (const std::uint32_t ports : {64U, 8U, 3U}) {
      const GroupShape shape = on_switches(shape_of({n}, false, false), ports);
      EXPECT_EQ(refusal(Op::kAllReduce, Choice::kSharp, shape), "");
      EXPECT_EQ(refusal(Op::kAllReduce, Choice::kNvls, shape).empty(), n <= ports);
      for (const std::int64_t elements : {std::int64_t{12} * n, std::int64_t{7}}) {
        for (const Op op : kCollectiveOps) prove(op, Choice::kSharp, shape, elements);
      }
    }
  }
  const GroupShape five = on_switches(shape_of({5}, false, false), 2);
  for (const Op op : kCollectiveOps) prove(op, Choice::kSharp, five, 400'003);  // 12 chunks
}

// Nodes with a switch between their members, and without.
TEST(CollectivesTest, ATreeARailKeepsThePromise) {
  for (const auto& sizes :
       std::vector<std::vector<std::uint32_t>>{{2, 2}, {3, 5}, {8, 3}, {4, 2, 3}, {2, 17}}) {
    for (const std::uint32_t ports : {64U, 3U, 2U}) {
      for (const bool switched : {true, false}) {
        GroupShape shape = shape_of(sizes, false, false);
        const std::uint32_t nodes = shape.members() / sizes[0];
        shape.rail_trees.assign(sizes[0], on_switches(shape_of({nodes}, false, false), ports).tree);
        if (switched) {
          shape.node_trees.assign(nodes, on_switches(shape_of({sizes[0]}, false, false), 64).tree);
        }
        for (const std::int64_t elements : {1, 40'321, 2'000'003}) {
          if (elements > 1'000'000 && shape.members() > 8) continue;  // chunks
          for (const Op op : kCollectiveOps) {
            prove(op, Choice::kSharp, shape, elements);
            prove(op, Choice::kNvlsTree, shape, elements);
          }
        }
      }
    }
  }
}

// Two nodes of 3 members. Endpoints 6 and 7 are the switches of the nodes; what comes behind
// belongs to no node.
TEST(CollectivesTest, MessagesInsideANodeSaySo) {
  GroupShape shape = shape_of({3, 2}, false, false);
  shape.rail_trees.assign(3, on_switches(shape_of({2}, false, false), 64).tree);
  shape.node_trees.assign(2, on_switches(shape_of({3}, false, false), 64).tree);
  std::map<std::uint32_t, std::uint32_t> node_of = {{6, 0}, {7, 1}};
  for (std::uint32_t i = 0; i < 6; ++i) node_of[shape.order[i]] = i / 3;
  const auto algorithm =
      choose_algorithm(task_of(Op::kAllReduce, shape, 40'321), Choice::kNvlsTree, shape);
  int inside = 0;
  for (std::uint32_t lane = 0; lane < algorithm->lanes(); ++lane) {
    for (std::uint32_t round = 0; round < algorithm->rounds(); ++round) {
      for (std::uint32_t from = 0; from < algorithm->endpoints(); ++from) {
        const auto message = algorithm->message(lane, round, from);
        if (!message) continue;
        const std::uint32_t to = message->to;
        const bool same =
            node_of.contains(from) && node_of.contains(to) && node_of.at(from) == node_of.at(to);
        EXPECT_EQ(message->in_node, same) << from << " to " << to;
        inside += same;
      }
    }
  }
  EXPECT_GT(inside, 0);
}

// An all-reduce crosses every link of the tree once each way, a broadcast every link once (FORMULAS
// C12, C17).
TEST(CollectivesTest, AnInNetworkCollectiveCrossesEveryLinkOnceEachWay) {
  const GroupShape shape = on_switches(shape_of({9}, false, false), 3);
  for (const Op op : {Op::kAllReduce, Op::kBroadcast}) {
    const auto algorithm = choose_algorithm(task_of(op, shape, 400'003), Choice::kSharp, shape);
    std::vector<std::int64_t> carried(2 * shape.tree.nodes.size());
    for (std::uint32_t lane = 0; lane < algorithm->lanes(); ++lane) {
      for (std::uint32_t round = 0; round < algorithm->rounds(); ++round) {
        for (std::uint32_t node = 0; node < algorithm->endpoints(); ++node) {
          const auto message = algorithm->message(lane, round, node);
          if (message) carried[message->link->index()] += message->bytes.value();
        }
      }
    }
    for (std::size_t node = 0; node + 1 < shape.tree.nodes.size(); ++node) {
      const std::int64_t up = carried[2 * node];
      const std::int64_t down = carried[2 * node + 1];
      EXPECT_EQ(up + down, op == Op::kAllReduce ? 1'600'012 : 800'006) << "at " << node;
      EXPECT_EQ(std::max(up, down), 800'006) << "at " << node;
    }
  }
}

// Enough data for many chunks: 64 KiB each (pipeline_chunks()).
TEST(CollectivesTest, PipelinesInChunksKeepThePromise) {
  for (const std::uint32_t n : {2U, 3U, 5U, 8U, 13U, 16U}) {
    const GroupShape shape = shape_of({n}, false, false);
    for (const std::int64_t elements : {40'000, 400'003, 4'000'037}) {
      prove(Op::kBroadcast, Choice::kChain, shape, elements);
      prove(Op::kReduce, Choice::kChain, shape, elements);
      prove(Op::kAllReduce, Choice::kDoubleBinaryTree, shape, elements);
    }
  }
  for (const auto& sizes : std::vector<std::vector<std::uint32_t>>{{2, 3}, {4, 2}, {3, 2, 2}}) {
    const GroupShape shape = shape_of(sizes, false, false);
    for (const std::int64_t elements : {4'000'037, 12'000'000}) {
      for (const Op op : kCollectiveOps) {
        prove(op, Choice::kOverlappedLevels, shape, elements);
        prove(op, Choice::kPxn, shape, elements);
        prove(op, Choice::kNodeForwarding, shape, elements);
      }
    }
  }
}

// Rings leave a node on the rail on which they enter the next node. So traffic between nodes stays
// on its rail, with equal bytes on every rail.
TEST(CollectivesTest, RotatedRingsUseEveryRailAlike) {
  for (const auto& sizes : std::vector<std::vector<std::uint32_t>>{{8, 4}, {4, 3}, {8, 2, 3}}) {
    const GroupShape shape = shape_of(sizes, false, false);
    const auto algorithm =
        choose_algorithm(task_of(Op::kAllReduce, shape, 9600), Choice::kRotatedRings, shape);
    std::vector<std::uint32_t> position(shape.members());
    for (std::uint32_t p = 0; p < shape.members(); ++p) position[shape.order[p]] = p;
    std::vector<int> leaves(sizes[0], 0);  // by rail
    for (std::uint32_t lane = 0; lane < algorithm->lanes(); ++lane) {
      for (std::uint32_t member = 0; member < shape.members(); ++member) {
        const std::uint32_t from = position[member];
        const std::uint32_t to = position[algorithm->message(lane, 0, member)->to];
        if (from / sizes[0] == to / sizes[0]) continue;
        EXPECT_EQ(from % sizes[0], to % sizes[0]);
        ++leaves[from % sizes[0]];
      }
    }
    for (const int count : leaves) {
      EXPECT_EQ(count, static_cast<int>(shape.members() / sizes[0])) << text(shape);
    }
  }
}

// A pipeline in one piece sends the same in all, over the same ways.
TEST(CollectivesTest, PipelinesInOnePieceKeepThePromise) {
  for (const GroupShape& shape : {shape_of({7}, false, false), shape_of({4, 3}, false, false)}) {
    for (const Op op : {Op::kAllReduce, Op::kBroadcast, Op::kReduce, Op::kScatter}) {
      for (const Choice choice : algorithms_for(op, shape)) {
        CollectiveTask task = task_of(op, shape, 1'000'003);
        task.in_one_piece = true;
        prove(task, choice, shape);
      }
    }
  }
}

// The sum that a relay gives is that of its messages, all to one member.
TEST(CollectivesTest, SumsOfRelaysAreThoseOfTheirMessages) {
  for (const auto& sizes : std::vector<std::vector<std::uint32_t>>{{8, 4}, {4, 3}, {8, 2, 3}}) {
    const GroupShape shape = shape_of(sizes, false, false);
    for (const Op op : {Op::kAllReduce, Op::kAllGather, Op::kReduceScatter}) {
      for (const std::int64_t elements : {1, 37, 9600, 9601}) {
        const auto relay =
            choose_algorithm(task_of(op, shape, elements), Choice::kRotatedRings, shape);
        ASSERT_TRUE(relay->relays());
        for (std::uint32_t lane = 0; lane < relay->lanes(); ++lane) {
          for (std::uint32_t member = 0; member < shape.members(); ++member) {
            const LaneSum sum = relay->lane_sum(lane, member);
            Bytes bytes{};
            for (std::uint32_t round = 0; round < relay->rounds(); ++round) {
              const auto message = relay->message(lane, round, member);
              EXPECT_EQ(message->to, sum.to);
              bytes += message->bytes;
            }
            EXPECT_EQ(bytes, sum.bytes) << text(shape) << ", lane " << lane << ", " << member;
          }
        }
      }
    }
  }
}

// A byte that is passed on all the way round takes the trips of its own way.
TEST(CollectivesTest, RelaysEndWithTheLongestWay) {
  const std::vector<std::uint32_t> next = {2, 4, 1, 5, 0, 3};  // 0 2 1 4 and 3 5
  const std::vector<Duration> hop = {Duration(7), Duration(1), Duration(2),
                                     Duration(3), Duration(5), Duration(4)};
  for (std::uint32_t rounds = 0; rounds < 14; ++rounds) {
    Duration longest{};
    for (std::uint32_t first = 0; first < next.size(); ++first) {
      Duration way{};
      std::uint32_t member = first;
      for (std::uint32_t round = 0; round < rounds; ++round) {
        way += hop[member];
        member = next[member];
      }
      longest = std::max(longest, way);
    }
    EXPECT_EQ(end_of_relay(rounds, next, hop), longest) << rounds;
  }
}

// As many rings as the smallest node has members, each through all members, and each crossing
// between nodes at cards of its own.
TEST(CollectivesTest, RotatedRingsOfUnevenNodesUseTheCardsOfTheSmallest) {
  for (const auto& nodes : std::vector<std::vector<std::uint32_t>>{
           {5, 3}, {2, 1}, {1, 4, 2}, {4, 8, 8}, {3, 3, 2, 4}}) {
    GroupShape shape = shape_of({std::reduce(nodes.begin(), nodes.end())}, false, false);
    shape.uneven_nodes = nodes;
    std::vector<std::uint32_t> node_of;
    for (std::uint32_t node = 0; node < nodes.size(); ++node) {
      node_of.insert(node_of.end(), nodes[node], node);
    }
    const auto algorithm =
        choose_algorithm(task_of(Op::kAllGather, shape, 9600), Choice::kRotatedRings, shape);
    EXPECT_EQ(algorithm->lanes(), std::ranges::min(nodes));
    std::vector<int> crossings(shape.members(), 0);
    for (std::uint32_t lane = 0; lane < algorithm->lanes(); ++lane) {
      std::uint32_t all = 0;
      for (std::uint32_t place = 0; place < shape.members(); ++place) {
        const std::uint32_t to = algorithm->message(lane, 0, shape.order[place])->to;
        const auto at = std::ranges::find(shape.order, to) - shape.order.begin();
        const bool crosses = node_of[place] != node_of[static_cast<std::size_t>(at)];
        crossings[place] += crosses ? 1 : 0;
        all += crosses ? 1 : 0;
      }
      EXPECT_EQ(all, nodes.size()) << "once out of each node";
    }
    EXPECT_LE(std::ranges::max(crossings), nodes.size() % 2 == 0 ? 1 : 2);
    for (const Op op : {Op::kAllReduce, Op::kAllGather, Op::kReduceScatter}) {
      for (const std::int64_t elements : {1, 37, 9600}) {
        prove(op, Choice::kRotatedRings, shape, elements);
      }
    }
  }
}

std::int64_t bytes_sent(const CollectiveAlgorithm& algorithm) {
  std::int64_t sum = 0;
  for (std::uint32_t lane = 0; lane < algorithm.lanes(); ++lane) {
    for (std::uint32_t round = 0; round < algorithm.rounds(); ++round) {
      for (std::uint32_t member = 0; member < algorithm.members(); ++member) {
        if (const auto message = algorithm.message(lane, round, member)) {
          sum += message->bytes.value();
        }
      }
    }
  }
  return sum;
}

// --- Ragged --------------------------------------------------------------------------------------

// Sizes that nothing divides, and pairs that exchange nothing.
ByteMatrix ragged(std::uint32_t members) {
  ByteMatrix matrix{.members = members};
  for (std::uint32_t pair = 0; pair < members * members; ++pair) {
    matrix.bytes.emplace_back(pair % 3 == 0 ? 0 : pair * 7919 % 1013);
  }
  return matrix;
}

TEST(CollectivesTest, ARaggedAllToAllBringsEveryMemberWhatTheMatrixSays) {
  for (std::uint32_t n = 2; n <= 64; n += n < 20 ? 1 : 11) {
    const GroupShape shape = shape_of({n}, false, false);
    const ByteMatrix matrix = ragged(n);
    CollectiveTask task = task_of(Op::kAllToAll, shape, 0);
    task.bytes = largest_buffer(matrix);
    task.element = Bytes(1);
    task.matrix = &matrix;
    for (const Choice choice : algorithms_for(Op::kAllToAll, shape)) prove(task, choice, shape);
  }
}

// Two nodes of 3 and three nodes of 2. A source has fewer bytes for a node than the sum of its
// bytes for the node's members, and likewise on the way back.
ByteMatrix shared(std::uint32_t members, std::uint32_t nodes, NodeSharing sharing) {
  ByteMatrix matrix{.members = members, .sharing = sharing};
  const std::uint32_t per_node = members / nodes;
  for (std::uint32_t pair = 0; pair < members * members; ++pair) {
    matrix.bytes.emplace_back(1000 + pair);
  }
  for (std::uint32_t member = 0; member < members; ++member) {
    matrix.node_of.push_back(member / per_node);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      matrix.shared.emplace_back(1700 + 10 * member + node);
    }
  }
  return matrix;
}

TEST(CollectivesTest, ForwardingInsideANodeCarriesWhatIsSharedOnce) {
  for (const std::uint32_t per_node : {2U, 3U}) {
    const std::uint32_t nodes = 6 / per_node;
    GroupShape shape = shape_of({per_node, nodes}, false, false);
    std::iota(shape.order.begin(), shape.order.end(), 0U);
    for (const NodeSharing sharing : {NodeSharing::kToNode, NodeSharing::kFromNode}) {
      const ByteMatrix matrix = shared(6, nodes, sharing);
      CollectiveTask task = task_of(Op::kAllToAll, shape, 0);
      task.matrix = &matrix;
      task.element = Bytes(1);
      task.bytes = largest_buffer(matrix);
      for (const Choice choice : algorithms_for(Op::kAllToAll, shape)) prove(task, choice, shape);
      // Between nodes, the one that can share sends `shared`, the other one everything.
      const bool to_node = sharing == NodeSharing::kToNode;
      const auto sharer =
          choose_algorithm(task, to_node ? Choice::kNodeForwarding : Choice::kPxn, shape);
      EXPECT_TRUE(sharer->forwards_shared());
      const std::uint32_t rail_round = to_node ? 0 : per_node - 1;
      const auto message = sharer->message(0, rail_round, 0);  // to the next node
      EXPECT_EQ(message->to, per_node);
      EXPECT_EQ(message->bytes,
                to_node ? matrix.between_node(0, 1) : matrix.between_node(per_node, 0));
    }
  }
}

TEST(CollectivesTest, AMatrixIsRefusedWhereItDoesNotFit) {
  const GroupShape torus = shape_of({4, 2}, true, true);
  const ByteMatrix matrix = ragged(8);
  CollectiveTask task = task_of(Op::kAllToAll, torus, 0);
  task.matrix = &matrix;
  task.element = Bytes(1);
  task.bytes = largest_buffer(matrix);
  EXPECT_EQ(weighed_algorithms(task, torus), std::vector{Choice::kDirect});
  EXPECT_THROW(choose_algorithm(task, Choice::kTorusAllToAll, torus), ConfigError);
  // Two nodes of four in the matrix, four of two in the group.
  const GroupShape mixed = shape_of({2, 4}, false, false);
  const ByteMatrix by_fours = shared(8, 2, NodeSharing::kToNode);
  task.matrix = &by_fours;
  EXPECT_THROW(choose_algorithm(task, Choice::kNodeForwarding, mixed), ConfigError);
  EXPECT_NO_THROW(choose_algorithm(task, Choice::kDirect, mixed));
}

TEST(CollectivesTest, APermutationSendsWhereItSays) {
  const GroupShape shape = shape_of({6}, false, false);
  const std::vector<std::uint32_t> cross = {3, 1, 5, 0, 2, 4};  // member 1 keeps what it has
  CollectiveTask task = task_of(Op::kPermute, shape, 10);
  task.permutation = cross;
  prove(task, Choice::kDirect, shape);
  const auto algorithm = choose_algorithm(task, Choice::kDirect, shape);
  EXPECT_EQ(algorithm->message(0, 0, 2)->to, 5U);
  EXPECT_FALSE(algorithm->message(0, 0, 1));
}

// --- Written down --------------------------------------------------------------------------------

// A ring all-gather of 3 members, and one in which lanes that wait for each other pass on in the
// second round what arrived in the first.
StepList gather_of_three(bool in_lanes) {
  StepList list{.name = "ring of three", .op = Op::kAllGather, .members = 3, .shards = 3};
  for (std::uint32_t member = 0; member < 3; ++member) {
    const std::uint32_t next = (member + 1) % 3;
    list.steps.push_back({.from = member, .to = next, .blocks = {member}});
    ListedStep pass{.round = 1, .from = member, .to = next, .blocks = {(member + 2) % 3}};
    if (in_lanes) {
      pass.lane = 1;
      pass.round = 0;
      pass.after = LaneGate{.lane = 0, .round = 0};
    }
    list.steps.push_back(pass);
  }
  return list;
}

TEST(CollectivesTest, AnAlgorithmThatIsWrittenDownIsProvenLikeTheOthers) {
  const GroupShape shape = shape_of({3}, false, false);
  for (const bool in_lanes : {false, true}) {
    StepList list = gather_of_three(in_lanes);
    EXPECT_TRUE(check(list).empty());
    CollectiveTask task = task_of(Op::kAllGather, shape, 100);
    task.steps = &list;
    prove(task, Choice::kCustom, shape);
    EXPECT_EQ(bytes_sent(*choose_algorithm(task, Choice::kCustom, shape)), 2 * 200);
    list.steps[1].blocks = {1};  // member 0 does not have that yet
    EXPECT_EQ(disproof(task, ListedSteps(task, list)).value_or(""),
              in_lanes ? "member 0 in round 0 of lane 1 sends block 1, which it does not have"
                       : "member 0 in round 1 of lane 0 sends block 1, which it does not have");
    list.steps[1] = list.steps[0];  // the same step twice
    EXPECT_EQ(check(list).size(), 1U);
  }
}

TEST(CollectivesTest, AListOfStepsMayServeMembersUnlike) {
  const StepList list{.name = "row of three",
                      .op = Op::kBroadcast,
                      .members = 3,
                      .shards = 1,
                      .steps = {{.from = 0, .to = 1, .blocks = {0}},
                                {.round = 1, .from = 1, .to = 2, .blocks = {0}}}};
  const CollectiveTask task{.op = Op::kBroadcast, .bytes = Bytes(12), .steps = &list};
  prove(task, Choice::kCustom, shape_of({3}, false, false));
}

TEST(CollectivesTest, LanesThatWaitForEachOtherAreFound) {
  StepList list = gather_of_three(true);
  for (std::uint32_t member = 0; member < 3; ++member) {
    list.steps[2 * member].after = LaneGate{.lane = 1, .round = 0};
  }
  const CollectiveTask task{.op = Op::kAllGather, .bytes = Bytes(12), .steps = &list};
  EXPECT_EQ(disproof(task, ListedSteps(task, list)).value_or(""),
            "member 0 never gets beyond round 0 of lane 0: it waits for what nobody sends");
}

// Tests the checker: it must reject an algorithm that sends a wrong block, or too little.
class Broken final : public CollectiveAlgorithm {
 public:
  enum class Fault { kNone, kNeverSends, kWrongBlock, kWrongBytes, kWrongCount, kAddsTwice };
  explicit Broken(Fault fault) : fault_(fault) {}
  std::uint32_t members() const override { return 2; }
  std::uint32_t lanes() const override { return 1; }
  std::uint32_t rounds() const override { return fault_ == Fault::kAddsTwice ? 2 : 1; }
  std::optional<CollectiveMessage> message(std::uint32_t, std::uint32_t,
                                           std::uint32_t member) const override {
    if (fault_ == Fault::kNeverSends && member == 1) return std::nullopt;
    return CollectiveMessage{.to = 1 - member,
                             .bytes = Bytes(fault_ == Fault::kWrongBytes ? 2 : 4),
                             .reduce = fault_ == Fault::kAddsTwice};
  }
  std::uint32_t receives(std::uint32_t, std::uint32_t, std::uint32_t member) const override {
    if (fault_ == Fault::kWrongCount) return 0;
    return fault_ == Fault::kNeverSends && member == 0 ? 0 : 1;
  }
  std::uint32_t shards() const override { return 2; }
  std::uint32_t shard_of(std::uint32_t member) const override { return member; }
  void blocks(std::uint32_t, std::uint32_t, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override {
    out.push_back(fault_ == Fault::kWrongBlock ? 1 - member : member);
  }

 private:
  Fault fault_;
};

TEST(CollectivesTest, TheProofSaysWhatIsWrong) {
  const CollectiveTask gather{.op = Op::kAllGather, .bytes = Bytes(8)};
  const CollectiveTask reduce{.op = Op::kAllReduce, .bytes = Bytes(8)};
  using Fault = Broken::Fault;
  const auto wrong = [](const CollectiveTask& task, Fault fault) {
    return disproof(task, Broken(fault)).value_or("");
  };
  EXPECT_EQ(wrong(gather, Fault::kNone), "");
  EXPECT_EQ(wrong(gather, Fault::kNeverSends),
            "member 0 ends with block 1 without the data of member 1");
  EXPECT_EQ(wrong(gather, Fault::kWrongBlock),
            "member 0 in round 0 of lane 0 sends block 1, which it does not have");
  EXPECT_EQ(wrong(gather, Fault::kWrongBytes),
            "a message from member 0 to 1 is of 2 bytes, but its blocks are of 4");
  EXPECT_EQ(wrong(gather, Fault::kWrongCount),
            "in round 0 of lane 0 member 1 receives more than 0 messages");
  EXPECT_EQ(wrong(reduce, Fault::kAddsTwice),
            "member 1 adds a contribution to block 0 twice, in round 1 of lane 0");
}

// Each of n shards (all-gather, reduce-scatter, all-to-all: n - 1 messages of each) and each whole
// buffer (broadcast, reduce) must cross n - 1 edges, (n - 1) N in all; all-reduce is two of them
// (FORMULAS B2, C1, C2, C24). Also when nothing divides anything.
TEST(CollectivesTest, SendsTheBytesOfTheDefinition) {
  for (const std::int64_t elements : {1, 7, 1000, 8191, 40'320, 1'000'001}) {
    for (const auto& sizes :
         std::vector<std::vector<std::uint32_t>>{{2}, {5}, {8}, {3, 5}, {4, 4, 2}}) {
      const GroupShape shape = shape_of(sizes, true, true);
      const std::int64_t n = shape.members();
      for (const Op op : kCollectiveOps) {
        for (const Choice choice : algorithms_for(op, shape)) {
          const auto algorithm = choose_algorithm(task_of(op, shape, elements), choice, shape);
          const std::int64_t bytes = 2 * elements;
          const bool power_of_two = (n & (n - 1)) == 0;
          std::int64_t expected = (n - 1) * bytes;
          if (op == Op::kAllReduce) {
            expected *= 2;
            if (choice == Choice::kRecursiveDoubling) continue;  // sends more on purpose
            if (choice == Choice::kHalvingDoubling && !power_of_two) continue;
          }
          if (op == Op::kGather || op == Op::kScatter) {
            if (choice != Choice::kDirect) continue;  // relays
            const std::int64_t own = algorithm->shard_of(static_cast<std::uint32_t>(n / 3));
            expected = bytes - 2 * ((own + 1) * elements / n - own * elements / n);
          }
          if (op == Op::kBarrier) expected = 0;
          if (op == Op::kSendReceive || op == Op::kPermute) expected = n * bytes;
          if (choice == Choice::kTorusAllToAll) continue;  // the next test
          EXPECT_EQ(bytes_sent(*algorithm), expected)
              << name_of(op) << " " << name_of(choice) << " n=" << n << " elements=" << elements;
        }
      }
    }
  }
}

// Each member gets 1/n of a member's bytes, over the sum of the shorter ways on every axis. The
// mean distance on a ring of n is n/4 (even) or (n^2 - 1) / (4 n) (odd), on a line (n^2 - 1) / (3
// n) (FORMULAS B6).
TEST(CollectivesTest, ATorusAllToAllGoesTheShorterWays) {
  struct Case {
    std::vector<std::uint32_t> sizes;
    bool wraps;
    double hops;
  };
  for (const Case& of : {Case{{8}, true, 2.0}, Case{{5}, true, 1.2}, Case{{4}, false, 1.25},
                         Case{{4, 8}, true, 3.0}, Case{{4, 4, 4}, true, 3.0}}) {
    const GroupShape shape = shape_of(of.sizes, true, of.wraps);
    const CollectiveTask task = task_of(Op::kAllToAll, shape, 960'000);
    const auto algorithm = choose_algorithm(task, Choice::kTorusAllToAll, shape);
    const double expected = 1'920'000.0 * shape.members() * of.hops;
    EXPECT_NEAR(static_cast<double>(bytes_sent(*algorithm)) / expected, 1, 1e-5) << text(shape);
  }
}

// K x K x 2K or K x 2K x 2K as topology/kinds/torus/twisted_torus.h has it: short axes twist, long
// ones wrap.
GroupShape twisted(const std::vector<std::uint32_t>& sizes) {
  GroupShape shape = shape_of(sizes, true, true);
  const std::uint32_t shorter = std::ranges::min(sizes);
  for (GroupDimension& axis : shape.dimensions) {
    axis.twists = axis.size == shorter;
    axis.wraps = !axis.twists;
  }
  return shape;
}

TEST(CollectivesTest, ATwistedTorusKeepsThePromise) {
  for (const auto& sizes :
       std::vector<std::vector<std::uint32_t>>{{2, 2, 4}, {4, 2, 2}, {2, 4, 4}}) {
    const GroupShape shape = twisted(sizes);
    for (const std::int64_t elements : {1, 40'321}) {
      prove(Op::kAllToAll, Choice::kTorusAllToAll, shape, elements);
      prove(Op::kGather, Choice::kRootTrees, shape, elements);
      prove(Op::kScatter, Choice::kRootTrees, shape, elements);
    }
  }
}

// All shortest ways of equal length carry equal shares, so that each of the six links of a member
// carries the mean distance over six of its bytes: 440 / 128 hops in 4x4x8, 512 / 128 without the
// twist.
TEST(CollectivesTest, AnAllToAllOfATwistedTorusLoadsAllLinksAlike) {
  const GroupShape shape = twisted({4, 4, 8});
  const CollectiveTask task = task_of(Op::kAllToAll, shape, 9'600'000);
  const auto algorithm = choose_algorithm(task, Choice::kTorusAllToAll, shape);
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> links;
  for (std::uint32_t lane = 0; lane < algorithm->lanes(); ++lane) {
    for (std::uint32_t round = 0; round < algorithm->rounds(); ++round) {
      for (std::uint32_t member = 0; member < shape.members(); ++member) {
        const auto message = algorithm->message(lane, round, member);
        if (message) links[{member, message->to}] += static_cast<double>(message->bytes.value());
      }
    }
  }
  EXPECT_EQ(links.size(), 128U * 6);
  for (const auto& [link, bytes] : links) {
    EXPECT_NEAR(bytes / (19'200'000.0 * 440 / 128 / 6), 1, 1e-5);
  }
}

// A root with P neighbours gets from none of them more than its even share of the other members; in
// the corner of a box of lines one more.
TEST(CollectivesTest, TreesShareTheMembersEvenlyAmongThePortsOfTheRoot) {
  struct Case {
    GroupShape shape;
    std::uint32_t root;
    std::uint32_t ports;
  };
  std::vector<Case> cases;
  for (std::uint32_t root = 0; root < 15; ++root) {
    cases.push_back({shape_of({3, 5}, true, true), root, 4});
    cases.push_back({shape_of({4, 4}, true, true), root, 4});
    cases.push_back({shape_of({4, 4, 8}, true, true), 8 * root, 6});
    cases.push_back({twisted({4, 4, 8}), 8 * root, 6});
  }
  cases.push_back({shape_of({4, 8}, true, false), shape_of({4, 8}, true, false).order[0], 2});
  cases.push_back({shape_of({2, 2, 4}, true, false), shape_of({2, 2, 4}, true, false).order[0], 3});
  for (const Case& of : cases) {
    CollectiveTask task = task_of(Op::kGather, of.shape, std::int64_t{of.shape.members()} * 100);
    task.root = of.root;
    const auto algorithm = choose_algorithm(task, Choice::kRootTrees, of.shape);
    std::map<std::uint32_t, std::int64_t> by_port;
    for (std::uint32_t round = 0; round < algorithm->rounds(); ++round) {
      for (std::uint32_t member = 0; member < of.shape.members(); ++member) {
        const auto message = algorithm->message(0, round, member);
        if (message && message->to == of.root) by_port[member] += message->bytes.value();
      }
    }
    EXPECT_EQ(by_port.size(), of.ports) << text(of.shape);
    std::int64_t even = (of.shape.members() - 1 + of.ports - 1) / of.ports;
    if (!of.shape.dimensions.back().wraps) ++even;
    for (const auto& [port, bytes] : by_port) {
      EXPECT_LE(bytes, even * 200) << text(of.shape) << " root " << of.root;
    }
  }
}

// On lines, the busiest link of a multi-axis collective carries what the ports of a corner allow,
// whatever the lengths of the lines: S (N-1)/N / M.
TEST(CollectivesTest, RotatedLinesOfUnequalLengthAreEquallyBusy) {
  for (const auto& sizes : std::vector<std::vector<std::uint32_t>>{
           {2, 4}, {4, 8}, {2, 2, 4}, {2, 3, 4}, {2, 16, 16}, {4, 4}}) {
    const GroupShape shape = shape_of(sizes, true, false);
    for (const Op op : {Op::kAllGather, Op::kReduceScatter}) {
      const CollectiveTask task = task_of(op, shape, 48'000LL * shape.members());
      const auto algorithm = choose_algorithm(task, Choice::kMultiAxis, shape);
      std::map<std::pair<std::uint32_t, std::uint32_t>, double> links;
      double most = 0;
      for (std::uint32_t lane = 0; lane < algorithm->lanes(); ++lane) {
        for (std::uint32_t round = 0; round < algorithm->rounds(); ++round) {
          for (std::uint32_t member = 0; member < shape.members(); ++member) {
            const auto message = algorithm->message(lane, round, member);
            if (!message) continue;
            double& bytes = links[{member, message->to}];
            bytes += static_cast<double>(message->bytes.value());
            most = std::max(most, bytes);
          }
        }
      }
      const double least = 96'000.0 * (shape.members() - 1) / static_cast<double>(sizes.size());
      EXPECT_GE(most / least, 1 - 1e-9) << text(shape);
      EXPECT_LT(most / least, 1.01) << text(shape);
    }
  }
}

// The order in which the members are given is the ring's order, whatever their places.
TEST(CollectivesTest, ARingTakesMembersInTheOrderGiven) {
  const GroupShape shape = shape_of({5, 2}, false, false);
  ASSERT_NE(shape.order[1], 1U);
  for (const Choice choice : {Choice::kRing, Choice::kBidirectionalRing}) {
    const auto algorithm = choose_algorithm(task_of(Op::kAllGather, shape, 100), choice, shape);
    for (std::uint32_t member = 0; member < 10; ++member) {
      EXPECT_EQ(algorithm->message(0, 0, member)->to, (member + 1) % 10);
    }
  }
}

// The algorithm that forwards inside nodes hands on copies that a node shares.
TEST(CollectivesTest, AutoSharesWhatTheMatrixShares) {
  GroupShape shape = shape_of({2, 2}, false, false);
  std::iota(shape.order.begin(), shape.order.end(), 0U);
  ByteMatrix matrix{.members = 4,
                    .bytes = std::vector<Bytes>(16, Bytes(100)),
                    .sharing = NodeSharing::kToNode,
                    .node_of = {0, 0, 1, 1},
                    .shared = std::vector<Bytes>(8, Bytes(150))};
  const CollectiveTask task{
      .op = Op::kAllToAll, .bytes = Bytes(400), .element = Bytes(1), .matrix = &matrix};
  EXPECT_EQ(weighed_algorithms(task, shape), std::vector{Choice::kNodeForwarding});
  matrix.sharing = NodeSharing::kFromNode;
  EXPECT_EQ(weighed_algorithms(task, shape), std::vector{Choice::kPxn});
  matrix.node_of = {0, 1, 1, 0};  // nodes that are not those of the group
  EXPECT_EQ(weighed_algorithms(task, shape), std::vector{Choice::kDirect});
}

std::vector<Choice> weighed(Op op, const GroupShape& shape) {
  return weighed_algorithms({.op = op, .bytes = Bytes(1 << 20)}, shape);
}

TEST(CollectivesTest, AutoWeighsWhatTheShapeAllows) {
  EXPECT_EQ(weighed(Op::kAllReduce, shape_of({8}, false, false)),
            (std::vector{Choice::kRing, Choice::kDoubleBinaryTree, Choice::kHalvingDoubling,
                         Choice::kRecursiveDoubling, Choice::kBruck}));
  EXPECT_EQ(weighed(Op::kReduceScatter, shape_of({7}, false, false)),
            (std::vector{Choice::kRing, Choice::kBruck}));
  EXPECT_EQ(weighed(Op::kAllReduce, shape_of({4, 4}, true, true)),
            (std::vector{Choice::kMultiAxis, Choice::kHalvingDoubling, Choice::kRecursiveDoubling,
                         Choice::kBruck}));
  EXPECT_EQ(weighed(Op::kAllGather, shape_of({8, 4}, false, false)),
            (std::vector{Choice::kRing, Choice::kHierarchical, Choice::kRecursiveDoubling,
                         Choice::kBruck, Choice::kRotatedRings}));
  EXPECT_EQ(weighed(Op::kAllToAll, shape_of({4, 4}, true, true)),
            std::vector{Choice::kTorusAllToAll});
  for (const std::uint32_t members : {64U, 65U, 1024U}) {
    EXPECT_EQ(weighed(Op::kAllToAll, shape_of({members}, false, false)),
              std::vector{Choice::kDirect});
  }
  EXPECT_EQ(weighed(Op::kBroadcast, shape_of({8}, false, false)),
            (std::vector{Choice::kBinomialTree, Choice::kChain}));
  EXPECT_EQ(weighed(Op::kGather, shape_of({4, 4}, true, false)),
            (std::vector{Choice::kDirect, Choice::kRootTrees, Choice::kBinomialTree}));
}

// Axes that wrap beside axes that do not, and slices of a torus around a switch.
TEST(CollectivesTest, MixedAxesAndSlicesKeepThePromise) {
  struct Case {
    std::vector<std::uint32_t> sizes;
    std::vector<int> kinds;  // 0: switched, 1: line, 2: ring
  };
  for (const Case& of : {Case{{4, 2}, {2, 1}}, Case{{2, 5}, {1, 2}}, Case{{3, 4, 2}, {2, 1, 1}},
                         Case{{4, 3}, {2, 0}}, Case{{2, 3, 4}, {1, 2, 0}},
                         Case{{2, 2, 4, 3}, {1, 1, 2, 0}}, Case{{5, 2}, {1, 0}}}) {
    GroupShape shape = shape_of(of.sizes, false, false);
    for (std::size_t d = 0; d < of.sizes.size(); ++d) {
      shape.dimensions[d].torus_axis = of.kinds[d] > 0;
      shape.dimensions[d].wraps = of.kinds[d] == 2;
    }
    for (const std::int64_t elements : {1, 13, 40'321}) prove_all(shape, elements);
  }
}

TEST(CollectivesTest, ARefusalSaysWhyAndWhatCanRun) {
  const GroupShape seven = shape_of({7}, false, false);
  // Algorithms of which nothing speaks by name come behind these.
  const auto expect_begin = [&seven](Op op, Choice choice, std::string_view begin) {
    const std::string reason = refusal(op, choice, seven);
    EXPECT_TRUE(reason.starts_with(begin)) << reason;
  };
  expect_begin(
      Op::kAllGather, Choice::kRecursiveDoubling,
      "needs a power of two members for this operation, the group has 7; in this group there "
      "are: ring, bidirectional-ring, direct, pairwise, bruck");
  expect_begin(Op::kAllToAll, Choice::kTorusAllToAll,
               "needs a group that fills a box of torus axes; in this group there are: direct, "
               "pairwise");
  expect_begin(Op::kBroadcast, Choice::kRing,
               "can't do broadcast; in this group there are: binomial-tree, chain");
  EXPECT_EQ(refusal(Op::kAllReduce, Choice::kHalvingDoubling, seven), "");
}

}  // namespace
}  // namespace stepsim
