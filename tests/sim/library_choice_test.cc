// The choice of `auto` without a communication library, if the switch of a node can add and copy.

#include "sim/collectives/library_choice.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "sim/collectives/choose_algorithm.h"
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
  return way_of(cluster, {.communicator = CommunicatorId(0), .op = op, .bytes = 1_GB, .type = type},
                chips)
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
  for (const std::int64_t adders : {440, 470}) {  // ways within 1 % are equal
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
    return ways_of(library, {.op = CollectiveOp::kAllToAll, .bytes = 4_MiB, .matrix = matrix},
                   false, AlgorithmChoice::kDirect, describe(cluster, members),
                   links_of(cluster, members, DataType::kBf16))
        .front()
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
    work.bytes = Bytes(bytes);
    work.type = type;
    return way_of(cluster, work).algorithm;
  };
  EXPECT_EQ(algorithm(8000, DataType::kBf16), AlgorithmChoice::kNvls);
  EXPECT_EQ(algorithm(8002, DataType::kBf16), AlgorithmChoice::kRing);
  EXPECT_EQ(algorithm(8000, DataType::kInt8), AlgorithmChoice::kRing);
}

// A library whose ring takes 100 us to start and whose tree 30 us, but half as much of the links.
CommunicationLibrary ring_and_tree() {
  return {.name = "made up",
          .timings = {{.path = LibraryPath::kRing, .start = 100us},
                      {.path = LibraryPath::kTree, .start = 30us, .link_fraction = {1, 1, 0.5}},
                      {.path = LibraryPath::kMessages}}};
}

// Four nodes of two, 50 GB/s a card: a ring carries 2 x 7/8 S/2 over each card, a tree 2 S/2 at
// half the rate: 17.5 and 40 ns for each KB, so rings are faster from 70 us / 22.5 ns = 3.1 MB on.
TEST(LibraryChoiceTest, TakesWhatIsFastestOnTheLinks) {
  DgxSuperPodSpec spec;
  spec.nodes = 4;
  spec.gpus_per_node = 2;
  spec.nvlink_bandwidth = 10'000_GBps;
  spec.nic_bandwidth = 50_GBps;
  Cluster cluster = cluster_of(spec);
  cluster.library = ring_and_tree();
  CollectiveWork work{.communicator = CommunicatorId(0),
                      .op = CollectiveOp::kAllReduce,
                      .bytes = {},
                      .type = DataType::kFp32};
  for (const std::int64_t bytes : {1'000, 2'800'000, 3'400'000, 1'000'000'000}) {
    work.bytes = Bytes(bytes);
    const CollectiveWay way = way_of(cluster, work);
    EXPECT_EQ(way.algorithm, bytes < 3'100'000 ? AlgorithmChoice::kDoubleBinaryTree
                                               : AlgorithmChoice::kRotatedRings)
        << bytes << ": " << way.why;
    work.algorithm = AlgorithmChoice::kAuto;
    const double automatic = simulated(cluster, work, Granularity::kPipelined);
    for (const AlgorithmChoice algorithm :
         {AlgorithmChoice::kRotatedRings, AlgorithmChoice::kDoubleBinaryTree}) {
      work.algorithm = algorithm;
      EXPECT_LE(automatic, simulated(cluster, work, Granularity::kPipelined)) << bytes;
    }
    work.algorithm = AlgorithmChoice::kAuto;
  }
}

// Over more than 1,024 members the ring is still a ring: its trips grow with the members.
TEST(LibraryChoiceTest, ALargeRingHasAllItsTrips) {
  DgxSuperPodSpec spec;
  spec.gpus_per_node = 8;
  spec.network_link_latency = 1us;
  CollectiveWork work{.communicator = CommunicatorId(0),
                      .op = CollectiveOp::kAllGather,
                      .bytes = 1_MiB,
                      .type = DataType::kFp32};
  double before = 0;
  for (const int nodes : {64, 128, 256}) {
    spec.nodes = nodes;
    Cluster cluster = cluster_of(spec);
    cluster.library = ring_and_tree();
    const double now = simulated(cluster, work, Granularity::kPipelined) - 100e-6;
    if (before > 0) {
      EXPECT_NEAR(now / before, 2, 0.15) << nodes;
    }
    before = now;
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
