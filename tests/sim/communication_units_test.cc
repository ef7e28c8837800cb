// The share of the chips that collectives take: channels by protocol, size and place, the rates at
// which chips can add and read, and the slowdown of kernels beside them.

#include <gtest/gtest.h>

#include <optional>

#include "sim/collectives/library_choice.h"
#include "sim/hardware/group_shape.h"
#include "sim/program/graph_by_hand.h"
#include "sim/run/ops/chip_share.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

// Rings by Simple and LL, messages by Simple; nothing but channels costs anything.
CommunicationLibrary library() {
  CommunicationLibrary spec;
  spec.name = "channels";
  spec.timings = {{.path = LibraryPath::kRing,
                   .protocol = Protocol::kSimple,
                   .channels = {.most = 24,
                                .network = 4,
                                .network_most = 16,
                                .bytes = Bytes(32 << 10),
                                .rate = 40_GBps,
                                .accesses = 3}},
                  {.path = LibraryPath::kMessages,
                   .protocol = Protocol::kSimple,
                   .channels = {.most = 32, .network = 4, .network_most = 32, .accesses = 4}}};
  return spec;
}

// `local` members a node of 8, links of 400 GB/s inside and 50 GB/s between.
GroupLinks links(std::uint32_t members, std::uint32_t nodes) {
  return {.members = members,
          .nodes = nodes,
          .of_node = members / nodes,
          .cards = members / nodes,
          .inside = members > nodes ? std::optional(400_GBps) : std::nullopt,
          .network = nodes > 1 ? std::optional(50_GBps) : std::nullopt,
          .adder = 400_GBps,
          .memory = 3000_GBps};
}

GroupShape in_a_row(std::uint32_t members) {
  GroupShape shape{.dimensions = {{.size = members}}, .order = {}};
  for (std::uint32_t member = 0; member < members; ++member) shape.order.push_back(member);
  return shape;
}

LibraryCost cost(const CommunicationLibrary& of, CollectiveOp op, Bytes bytes,
                 const GroupLinks& where) {
  return ways_of(of, {.op = op, .bytes = bytes}, true, AlgorithmChoice::kAuto,
                 in_a_row(where.members), where)
      .front()
      .cost;
}

TEST(CommunicationUnitsTest, ChannelsOpenWithTheBytes) {
  const auto channels = [](Bytes bytes) {
    return cost(library(), CollectiveOp::kAllReduce, bytes, links(8, 1)).channels;
  };
  EXPECT_EQ(channels(Bytes(1)), 1);
  EXPECT_EQ(channels(Bytes(64 << 10)), 2);
  EXPECT_EQ(channels(Bytes(512 << 10)), 16);
  EXPECT_EQ(channels(Bytes(24 * (32 << 10))), 24);
  EXPECT_EQ(channels(1_GB), 24);
}

// As logged on four nodes of eight: 16 with all of them, 4 with one a node.
TEST(CommunicationUnitsTest, OverNodesChannelsFollowTheCards) {
  const auto channels = [](std::uint32_t members, std::uint32_t nodes) {
    return cost(library(), CollectiveOp::kAllReduce, 1_GB, links(members, nodes)).channels;
  };
  EXPECT_EQ(channels(4, 4), 4);
  EXPECT_EQ(channels(8, 4), 8);
  EXPECT_EQ(channels(32, 4), 16);
}

TEST(CommunicationUnitsTest, FewerChannelsAskedForAreSlower) {
  CommunicationLibrary few = library();
  few.most_channels = 5;
  const LibraryCost five = cost(few, CollectiveOp::kAllGather, 1_GB, links(8, 1));
  EXPECT_EQ(five.channels, 5);
  EXPECT_DOUBLE_EQ(five.wire[0], 2) << "5 x 40 GB/s of 400 GB/s";
  few.most_channels = 10;
  EXPECT_DOUBLE_EQ(cost(few, CollectiveOp::kAllGather, 1_GB, links(8, 1)).wire[0], 1);
}

TEST(CommunicationUnitsTest, UnitsThatAddSlowlyHoldReductionsOnly) {
  GroupLinks slow = links(8, 1);
  slow.adder = Bandwidth(10e9);  // 24 x 10 GB/s
  EXPECT_DOUBLE_EQ(cost(library(), CollectiveOp::kReduceScatter, 1_GB, slow).wire[0], 400. / 240);
  EXPECT_DOUBLE_EQ(cost(library(), CollectiveOp::kAllReduce, 1_GB, slow).wire[0], 400. / 240);
  EXPECT_DOUBLE_EQ(cost(library(), CollectiveOp::kAllGather, 1_GB, slow).wire[0], 1);
}

TEST(CommunicationUnitsTest, MemoryLimitsWhatIsReadAndWritten) {
  GroupLinks slow = links(8, 1);
  slow.memory = 600_GBps;  // three accesses a byte: 200 GB/s
  EXPECT_DOUBLE_EQ(cost(library(), CollectiveOp::kAllReduce, 1_GB, slow).wire[0], 2);
  EXPECT_NEAR(cost(library(), CollectiveOp::kAllReduce, 1_GB, slow).memory.value(), 600e9, 1);
  EXPECT_NEAR(cost(library(), CollectiveOp::kAllReduce, 1_GB, links(8, 1)).memory.value(), 1200e9,
              1);
  EXPECT_NEAR(cost(library(), CollectiveOp::kAllReduce, 1_GB, links(4, 4)).memory.value(), 150e9,
              1);
}

TEST(CommunicationUnitsTest, CopyEnginesHoldNoUnits) {
  CommunicationLibrary engines = library();
  engines.copy_engines = true;
  EXPECT_EQ(cost(engines, CollectiveOp::kAllGather, 1_GB, links(8, 1)).channels, 0);
  EXPECT_EQ(cost(engines, CollectiveOp::kAllToAll, 1_GB, links(8, 1)).channels, 0);
  EXPECT_EQ(cost(engines, CollectiveOp::kReduceScatter, 1_GB, links(8, 1)).channels, 24);
  EXPECT_EQ(cost(engines, CollectiveOp::kAllGather, 1_GB, links(8, 2)).channels, 16);
}

TEST(CommunicationUnitsTest, WhatIsTakenIsAShareOfTheChip) {
  ChipSpec chip;
  chip.memory_bandwidth = 3000_GBps;
  const LibraryCost of{.channels = 24, .memory = 600_GBps};
  EXPECT_EQ(taken_of(chip, of), ChipShare{}) << "no units: DMA";
  chip.communication.units = 96;
  EXPECT_EQ(taken_of(chip, of), (ChipShare{.compute = 250'000, .memory = 200'000}));
  chip.communication.fixed = {.compute_share = 0.5};
  EXPECT_EQ(taken_of(chip, of), (ChipShare{.compute = 500'000, .memory = 0}));
}

// Compute 100 ms alone. From 0 to 50 ms an all-gather of 10 GB over 100 GB/s runs in 10 channels on
// 20 units: 25 ms of work are done by then, the rest takes 75 ms. Over copy engines nothing is
// lost.
TEST(CommunicationUnitsTest, KernelsBesideACollectiveLackItsUnits) {
  GraphByHand hand(2);
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    hand.compute_for(rank, 100ms);
    hand.collective(rank, hand.stream(rank, "dp"),
                    {.communicator = all, .op = CollectiveOp::kAllGather, .bytes = 10_GB});
  }
  const OpGraph graph = hand.build();
  Cluster cluster = one_node(2, 100_GBps);
  cluster.chip.communication.units = 20;
  EXPECT_EQ(simulate(graph, cluster, {}).step_time, 100ms) << "an ideal library takes nothing";
  cluster.library = library();
  cluster.library.most_channels = 10;
  EXPECT_EQ(simulate(graph, cluster, {}).step_time, 125ms);
  EXPECT_EQ(simulate(graph, cluster, {.granularity = Granularity::kStepped}).step_time, 125ms);
  cluster.library.copy_engines = true;
  EXPECT_EQ(simulate(graph, cluster, {}).step_time, 100ms);
}

// The same with matmuls of 1 s on 20 units. 5 of them are communication's: the others take 4/3 s,
// and of the 10 of the all-gather only 5 more are missing while it runs, a third of 15: of 50 ms a
// third is lost, which takes 1/60 s at the end. With a margin of 10 it takes none besides.
TEST(CommunicationUnitsTest, CollectivesHoldTheMarginFirst) {
  const auto step = [](std::int64_t margin, bool gathers) {
    GraphByHand hand(2);
    const CommunicatorId all = hand.communicator();
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      hand.compute_for(rank, 1s);
      if (!gathers) continue;
      hand.collective(rank, hand.stream(rank, "dp"),
                      {.communicator = all, .op = CollectiveOp::kAllGather, .bytes = 10_GB});
    }
    Cluster cluster = one_node(2, 100_GBps);
    cluster.chip.communication.units = 20;
    cluster.chip = with_sm_margin(cluster.chip, margin);
    cluster.library = library();
    cluster.library.most_channels = 10;
    return to_seconds(simulate(hand.build(), cluster, {}).step_time);
  };
  EXPECT_NEAR(step(0, false), 1, 1e-9);
  EXPECT_NEAR(step(0, true), 1.025, 1e-9);
  EXPECT_NEAR(step(5, false), 4.0 / 3, 1e-9);
  EXPECT_NEAR(step(5, true), 4.0 / 3 + 1.0 / 60, 1e-6);
  EXPECT_NEAR(step(10, true), 2, 1e-9);
  EXPECT_NEAR(step(15, true), 4, 1e-9);
}

}  // namespace
}  // namespace stepsim
