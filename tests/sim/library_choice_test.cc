// The choice of `auto` without a communication library, if the switch of a node can add and copy.

#include "sim/collectives/library_choice.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "sim/hardware/group_links.h"
#include "tests/support/idle_collective.h"

namespace stepsim {
namespace {

using namespace literals;

Cluster node_of(int gpus, bool nvls) {
  Cluster cluster = one_node(gpus, 100_GBps, 100ns);
  cluster.chip.communication.nvls = nvls;
  return cluster;
}

AlgorithmChoice taken(const Cluster& cluster, CollectiveOp op, DataType type = DataType::kBf16,
                      const std::vector<std::uint32_t>& chips = {}) {
  const std::vector<std::uint32_t> members = chips.empty() ? all_chips(cluster) : chips;
  return choose_with_library(cluster.library, {.op = op, .bytes = 1_GB}, switches_can_add(type),
                             AlgorithmChoice::kAuto, describe(cluster, members),
                             links_of(cluster, members, type))
      .algorithm;
}

constexpr CollectiveOp kInSwitch[] = {CollectiveOp::kAllReduce, CollectiveOp::kAllGather,
                                      CollectiveOp::kReduceScatter, CollectiveOp::kBroadcast,
                                      CollectiveOp::kReduce};

TEST(IdealLibraryTest, TakesTheSwitchThatAddsAndCopies) {
  for (const int gpus : {2, 3, 8}) {
    for (const CollectiveOp op : kInSwitch) {
      EXPECT_EQ(taken(node_of(gpus, true), op), AlgorithmChoice::kNvls) << name_of(op);
      EXPECT_NE(taken(node_of(gpus, false), op), AlgorithmChoice::kNvls) << name_of(op);
    }
  }
  EXPECT_EQ(taken(node_of(8, true), CollectiveOp::kAllToAll), AlgorithmChoice::kDirect);
}

// 8 members, 100 GB/s: all-reduce of 800 MB 8 ms in place of 14, shards 7; a trip is 200 ns.
TEST(IdealLibraryTest, NothingIsFasterThanWhatItTakes) {
  const Cluster cluster = node_of(8, true);
  for (const CollectiveOp op : kInSwitch) {
    CollectiveWork work{.communicator = CommunicatorId(0),
                        .op = op,
                        .bytes = Bytes(800'000'000),
                        .type = DataType::kBf16};
    const double automatic = simulated(cluster, work, Granularity::kPipelined);
    const bool shards = op == CollectiveOp::kAllGather || op == CollectiveOp::kReduceScatter;
    EXPECT_DOUBLE_EQ(automatic, (shards ? 7e-3 : 8e-3) + 200e-9) << name_of(op);
    EXPECT_EQ(simulated(cluster, work, Granularity::kStepped), automatic);
    for (const AlgorithmChoice other : algorithms_for(op, shape_of(cluster))) {
      work.algorithm = other;
      EXPECT_GE(simulated(cluster, work, Granularity::kPipelined), automatic) << name_of(other);
    }
  }
}

TEST(IdealLibraryTest, SwitchesAddFloatingPointNumbersOnly) {
  const Cluster cluster = node_of(8, true);
  EXPECT_EQ(taken(cluster, CollectiveOp::kAllReduce, DataType::kInt8), AlgorithmChoice::kRing);
  EXPECT_EQ(taken(cluster, CollectiveOp::kReduceScatter, DataType::kFp8), AlgorithmChoice::kRing);
  EXPECT_EQ(taken(cluster, CollectiveOp::kAllGather, DataType::kFp8), AlgorithmChoice::kNvls);
}

// 8 members bring 8 S of operands. A ring takes 14/8 S over links of 100 GB/s, so 457 GB/s is as
// fast.
TEST(IdealLibraryTest, LeavesASwitchThatAddsSlowly) {
  for (const std::int64_t adders : {456, 458}) {
    Cluster cluster = node_of(8, true);
    cluster.adders = add_adders(Bandwidth(1e9 * static_cast<double>(adders)), cluster.fabric);
    EXPECT_EQ(taken(cluster, CollectiveOp::kAllReduce),
              adders < 457 ? AlgorithmChoice::kRing : AlgorithmChoice::kNvls);
    EXPECT_EQ(taken(cluster, CollectiveOp::kAllGather), AlgorithmChoice::kNvls) << "nothing to add";
  }
}

// Members 0 and 1 are one node, 2 and 3 the other.
ByteMatrix shared_by_nodes() {
  return {.members = 4,
          .bytes = std::vector<Bytes>(16, 1_MiB),
          .sharing = NodeSharing::kToNode,
          .node_of = {0, 0, 1, 1},
          .shared = std::vector<Bytes>(8, 1_MiB)};
}

TEST(LibraryChoiceTest, KernelsOfAllToAllsThatNodesShareServeNoOthers) {
  const Cluster cluster = node_of(4, false);
  CommunicationLibrary library{.name = "made up",
                               .timings = {{.path = LibraryPath::kRing},
                                           {.path = LibraryPath::kMessages, .start = 3us},
                                           {.path = LibraryPath::kRelay, .start = 7us}}};
  const auto start_of = [&](const ByteMatrix* matrix) {
    const std::vector<std::uint32_t> members = all_chips(cluster);
    return choose_with_library(library,
                               {.op = CollectiveOp::kAllToAll, .bytes = 4_MiB, .matrix = matrix},
                               false, AlgorithmChoice::kDirect, describe(cluster, members),
                               links_of(cluster, members, DataType::kBf16))
        .cost.start;
  };
  const ByteMatrix shared = shared_by_nodes();
  ByteMatrix own = shared;
  own.sharing = NodeSharing::kNone;
  EXPECT_EQ(start_of(&shared), 7us);
  EXPECT_EQ(start_of(&own), 3us);
  EXPECT_EQ(start_of(nullptr), 3us);
  library.timings.pop_back();
  EXPECT_EQ(start_of(&shared), 3us) << "sent as messages";
}

// One reading of 8 KB by 7 others at 70 GB/s: 3 us + 2 x 0.5 us (two doublings more than 2 members)
// + 0.8 us. Beyond 8 KB it is a ring.
TEST(LibraryChoiceTest, AServingLibraryHasAKernelForSmallAllReduces) {
  Cluster cluster = node_of(8, true);
  cluster.library = {.name = "made up",
                     .timings = {{.path = LibraryPath::kRing}, {.path = LibraryPath::kMessages}},
                     .direct_all_reduce = DirectAllReduce{.up_to = Bytes(8000),
                                                          .one_start = 3us,
                                                          .one_doubling = 500ns,
                                                          .one_bandwidth = 70_GBps,
                                                          .two_start = 1s,
                                                          .two_bandwidth = 70_GBps}};
  CollectiveWork work{.communicator = CommunicatorId(0),
                      .op = CollectiveOp::kAllReduce,
                      .bytes = Bytes(8000),
                      .type = DataType::kBf16};
  for (const Granularity granularity : {Granularity::kPipelined, Granularity::kStepped}) {
    EXPECT_DOUBLE_EQ(simulated(cluster, work, granularity), 4.8e-6);
  }
  const auto algorithm = [&](std::int64_t bytes, DataType type) {
    const std::vector<std::uint32_t> members = all_chips(cluster);
    return choose_with_library(cluster.library,
                               {.op = CollectiveOp::kAllReduce, .bytes = Bytes(bytes)},
                               switches_can_add(type), AlgorithmChoice::kAuto,
                               describe(cluster, members), links_of(cluster, members, type))
        .algorithm;
  };
  EXPECT_EQ(algorithm(8000, DataType::kBf16), AlgorithmChoice::kNvls);
  EXPECT_EQ(algorithm(8002, DataType::kBf16), AlgorithmChoice::kRing);
  EXPECT_EQ(algorithm(8000, DataType::kInt8), AlgorithmChoice::kRing);
}

// Level by level an all-reduce crosses the network 2 x (nodes - 1) times: 398 us over 200 nodes of
// 8, with 1 us a hop there and nothing inside. A tree with a fixed time is taken if it is faster.
TEST(LibraryChoiceTest, LevelByLevelEachNodeIsEnteredOncePerPass) {
  GroupShape shape{.dimensions = {{.size = 8}, {.size = 200}}, .order = {}};
  for (std::uint32_t i = 0; i < 1600; ++i) shape.order.push_back(i);
  const GroupLinks links{.members = 1600, .nodes = 200, .inside = 100_GBps, .network = 50_GBps};
  for (const auto& [tree, takes_tree] : {std::pair{397us, true}, std::pair{399us, false}}) {
    const CommunicationLibrary library{
        .name = "made up",
        .timings = {{.path = LibraryPath::kRing},
                    {.path = LibraryPath::kRing, .protocol = Protocol::kLl},
                    {.path = LibraryPath::kTree, .protocol = Protocol::kLl},
                    {.path = LibraryPath::kMessages}},
        .tuner = {
            .protocols = {
                {.path = LibraryPath::kRing, .protocol = Protocol::kLl, .hop = {0us, 0us, 1us}},
                {.path = LibraryPath::kTree, .protocol = Protocol::kLl, .base = tree}}}};
    const LibraryChoice choice =
        choose_with_library(library, {.op = CollectiveOp::kAllReduce, .bytes = 2_B}, false,
                            AlgorithmChoice::kAuto, shape, links);
    EXPECT_EQ(choice.algorithm,
              takes_tree ? AlgorithmChoice::kDoubleBinaryTree : AlgorithmChoice::kHierarchical)
        << choice.why;
  }
}

TEST(IdealLibraryTest, OtherSwitchesAreNotTaken) {
  DgxSuperPodSpec spec;
  spec.nodes = 2;
  Cluster cluster = cluster_of(spec);
  cluster.chip.communication.nvls = true;
  EXPECT_EQ(taken(cluster, CollectiveOp::kAllReduce), AlgorithmChoice::kHierarchical);
  EXPECT_EQ(taken(cluster, CollectiveOp::kAllReduce, DataType::kBf16, {0, 8}),
            AlgorithmChoice::kRing)
      << "a leaf between two nodes";
  EXPECT_EQ(taken(cluster, CollectiveOp::kAllReduce, DataType::kBf16, {1, 2, 5}),
            AlgorithmChoice::kNvls);
  cluster.library.inside = HopKind::kPcie;
  EXPECT_EQ(taken(cluster, CollectiveOp::kAllReduce, DataType::kBf16, {1, 2, 5}),
            AlgorithmChoice::kRing);
}

}  // namespace
}  // namespace stepsim
