// Whole programs on the packet network, and the estimate of their size.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/program/graph_by_hand.h"
#include "sim/run/collectives/packet_estimate.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

constexpr SimulationOptions kPackets{.fidelity = Fidelity::kPacket,
                                     .granularity = Granularity::kStepped};

// Every rank in one ring all-reduce of 4 MiB.
OpGraph all_reduce(std::uint32_t ranks) {
  GraphByHand hand(ranks);
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    hand.collective(rank, hand.stream(rank, "dp"),
                    {.communicator = all,
                     .op = CollectiveOp::kAllReduce,
                     .bytes = 4_MiB,
                     .algorithm = AlgorithmChoice::kRing});
  }
  return hand.build();
}

// Rank r sends `bytes` to each of `peers[r]`, every message from a stream of its own.
OpGraph sends(const std::vector<std::vector<std::uint32_t>>& peers, Bytes bytes) {
  const auto ranks = static_cast<std::uint32_t>(peers.size());
  GraphByHand hand(ranks);
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const std::uint32_t peer : peers[rank]) {
      const std::string name = std::to_string(rank) + ">" + std::to_string(peer);
      const auto boundary = static_cast<std::int32_t>(rank);
      hand.messages(rank, hand.stream(rank, name),
                    {{.is_send = true,
                      .communicator = all,
                      .peer = peer,
                      .boundary = boundary,
                      .bytes = bytes}});
      hand.messages(peer, hand.stream(peer, name),
                    {{.is_send = false,
                      .communicator = all,
                      .peer = rank,
                      .boundary = boundary,
                      .bytes = bytes}});
    }
  }
  return hand.build();
}

// 6 rounds of 1 MiB = 256 packets, 81.92 ns each at 50 GB/s.
constexpr Duration kPacket(81'920);
constexpr Duration kRound = 256 * kPacket;

TEST(PacketSimulateTest, ARingOfLinksTakesItsClosedForm) {
  const Cluster cluster = ring_of(4, 50_GBps, 1us);
  EXPECT_EQ(simulate(all_reduce(4), cluster, kPackets).step_time, 6 * (kRound + 1us));
}

TEST(PacketSimulateTest, ASwitchStoresAPacketMore) {
  // Two links a message, 1 us each; the switch forwards a packet when it is there.
  const Cluster cluster = one_node(4, 50_GBps, 1us);
  EXPECT_EQ(simulate(all_reduce(4), cluster, kPackets).step_time, 6 * (kRound + kPacket + 2us));
  SimulationOptions cut_through = kPackets;
  cut_through.packets.switching = Switching::kCutThrough;
  cut_through.packets.header_bytes = 64_B;
  EXPECT_EQ(simulate(all_reduce(4), cluster, cut_through).step_time,
            6 * (kRound + Duration(1'280) + 2us));
}

// Starting takes 5 us and each hop 1 us; protocols use half of a link.
CommunicationLibrary half_of_links() {
  CommunicationLibrary library;
  library.name = "half";
  library.timings = {{.path = LibraryPath::kRing,
                      .protocol = Protocol::kSimple,
                      .start = 5us,
                      .hop = {1us, 1us, 1us},
                      .link_fraction = {0.5, 0.5, 0.5}},
                     {.path = LibraryPath::kMessages,
                      .protocol = Protocol::kSimple,
                      .start = 5us,
                      .hop = {1us, 1us, 1us},
                      .link_fraction = {0.5, 0.5, 0.5}}};
  return library;
}

TEST(PacketSimulateTest, ALibraryCostsPacketsWhatItCostsAFlow) {
  // 5 us to start, then 6 rounds of 1 us for the hop, 2 us of links and twice the bytes on the
  // wire. With packets the switch stores one more in each round.
  Cluster cluster = one_node(4, 50_GBps, 1us);
  cluster.library = half_of_links();
  const Duration flow = 5us + 6 * (1us + 2us + 2 * kRound);
  EXPECT_EQ(simulate(all_reduce(4), cluster, {.granularity = Granularity::kStepped}).step_time,
            flow);
  EXPECT_EQ(simulate(all_reduce(4), cluster, kPackets).step_time, flow + 6 * kPacket);
}

TEST(PacketSimulateTest, ALibraryCostsAMessageAsMuchAsItsFlow) {
  Cluster cluster = one_node(2, 50_GBps, 1us);
  cluster.library = half_of_links();
  const OpGraph graph = sends({{1}, {}}, 1_MiB);
  const Duration flow = 5us + 1us + 2us + 2 * kRound;
  EXPECT_EQ(simulate(graph, cluster, {}).step_time, flow);
  EXPECT_EQ(simulate(graph, cluster, kPackets).step_time, flow + kPacket);
  SimulationOptions finite = kPackets;
  finite.packets.buffer_bytes = 64_KiB;
  EXPECT_EQ(simulate(graph, cluster, finite).step_time, flow + kPacket);
}

TEST(PacketSimulateTest, PipelinedCollectivesAreRefused) {
  EXPECT_THROW(simulate(all_reduce(2), one_node(2, 50_GBps), {.fidelity = Fidelity::kPacket}),
               std::logic_error);
}

TEST(PacketSimulateTest, TheOrderOfSimultaneousOpsChangesNothing) {
  // Rank 0 sends to 1 and 2 in the same instant, over one link: who is first must not depend on the
  // order in which the ops are started.
  const OpGraph graph = sends({{1, 2, 3}, {2, 3}, {3}, {}}, 1_MiB);
  const Cluster cluster = one_node(4, 50_GBps, 1us);
  SimulationOptions options = kPackets;
  options.recorded_ranks = {RankId(0), RankId(1), RankId(2), RankId(3)};
  const SimulationResult expected = simulate(graph, cluster, options);
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    options.shuffle_seed = seed;
    const SimulationResult result = simulate(graph, cluster, options);
    ASSERT_EQ(result.step_time, expected.step_time);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const Timeline& timeline = result.timelines[rank];
      for (const TimelineOp& op : timeline.ops) {
        for (const TimelineOp& other : expected.timelines[rank].ops) {
          if (op.op == other.op) {
            ASSERT_EQ(op.ended, other.ended) << "rank " << rank;
          }
        }
      }
    }
  }
}

TEST(PacketSimulateTest, ACircleOfFullBuffersIsADeadlock) {
  // On a ring of four, every rank sends 5 packets two links on (the tie goes the plus way).
  const OpGraph graph = sends({{2}, {3}, {0}, {1}}, 20'480_B);
  SimulationOptions options = kPackets;
  options.packets.buffer_bytes = 5 * 4'096_B;
  EXPECT_NO_THROW(simulate(graph, ring_of(4, 50_GBps), options));
  options.packets.buffer_bytes = 4'096_B;
  try {
    simulate(graph, ring_of(4, 50_GBps), options);
    FAIL() << "expected DeadlockError";
  } catch (const DeadlockError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("a circle of full buffers (4096 bytes each) stops 4 messages"),
              std::string::npos)
        << text;
  }
}

TEST(PacketSimulateTest, SprayingOverOneRouteChangesNothing) {
  const Cluster cluster = one_node(4, 50_GBps, 1us);
  SimulationOptions options = kPackets;
  options.packets.spraying = PacketSpraying{.routes = 4};
  EXPECT_EQ(simulate(all_reduce(4), cluster, options).step_time,
            simulate(all_reduce(4), cluster, kPackets).step_time);
}

// The ways of one message over different groups are not equally long, and nothing is lost on them.
TEST(PacketSimulateTest, SprayingOverValiantRoutesRuns) {
  const Cluster cluster = cluster_of(DragonflySpec{.hosts_per_router = 1,
                                                   .routers_per_group = 3,
                                                   .global_links_per_router = 1,
                                                   .groups = 4,
                                                   .host_bandwidth = 50_GBps,
                                                   .local_bandwidth = 50_GBps,
                                                   .global_bandwidth = 50_GBps,
                                                   .routing = DragonflyRouting::kValiant});
  SimulationOptions options = kPackets;
  options.packets.spraying = PacketSpraying{.routes = 7};
  EXPECT_NO_THROW(simulate(all_reduce(12), cluster, options));
}

TEST(PacketSimulateTest, PacketsThatChooseTheirLinksAreCountedWhereTheyWent) {
  const Cluster cluster = cluster_of(LeafSpineSpec{.leaves = 4,
                                                   .hosts_per_leaf = 1,
                                                   .spines = 2,
                                                   .host_bandwidth = 50_GBps,
                                                   .oversubscription = 1,
                                                   .routing = {.rule = PathRule::kAdaptive}});
  const SimulationResult result = simulate(all_reduce(4), cluster, kPackets);
  double from_chips = 0;
  double to_spines = 0;
  for (const LinkTotal& total : result.links) {
    const std::string name = cluster.fabric.link_name(total.link);
    EXPECT_LE(total.utilization, 1 + 1e-6) << name;
    if (name.starts_with("chip")) from_chips += total.bytes;
    if (name.find(">spine") != std::string::npos) to_spines += total.bytes;
  }
  EXPECT_GT(from_chips, 0);
  EXPECT_NEAR(to_spines, from_chips, 1e-6 * from_chips);
}

// --- Estimate ------------------------------------------------------------------------------------

TEST(PacketEstimateTest, IsExactForSmallCollectives) {
  // 4 members x 6 rounds x 256 packets x 2 links.
  const Cluster cluster = one_node(4, 50_GBps);
  const OpGraph graph = all_reduce(4);
  const PacketEstimate estimate = estimate_packets(graph, cluster, {}, 1);
  EXPECT_EQ(estimate.packet_hops, 12'288u);
  EXPECT_EQ(estimate.messages, 24u);
  EXPECT_EQ(simulate(graph, cluster, kPackets).statistics.packet_hops, 12'288u);
  EXPECT_EQ(estimate_packets(graph, cluster, {}, 3).packet_hops, 3 * 12'288u);
  EXPECT_EQ(estimate_packets(graph, cluster, {.packet_bytes = 1_MiB}, 1).packet_hops, 48u);
}

// 1 and 2 MiB by rings of 4 members: 4 x 3 rounds x 64 and 128 packets x 2 links.
TEST(PacketEstimateTest, AddsUpAllCollectivesAndHowOftenTheyRun) {
  GraphByHand hand(4);
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const StreamId stream = hand.stream(rank, "dp");
    for (const Bytes bytes : {1_MiB, 2_MiB, 2_MiB}) {
      hand.collective(rank, stream,
                      {.communicator = all,
                       .op = CollectiveOp::kAllGather,
                       .bytes = bytes,
                       .algorithm = AlgorithmChoice::kRing});
    }
  }
  const Cluster cluster = one_node(4, 50_GBps);
  const OpGraph graph = hand.build();
  const std::uint64_t hops = simulate(graph, cluster, kPackets).statistics.packet_hops;
  EXPECT_EQ(hops, 4u * 3 * (64 + 128 + 128) * 2);
  EXPECT_EQ(estimate_packets(graph, cluster, {}, 1).packet_hops, hops);
}

TEST(PacketEstimateTest, CountsEachMessageOnce) {
  // 6 messages of 2 packets over 2 links.
  const Cluster cluster = one_node(4, 50_GBps);
  const OpGraph graph = sends({{1, 2, 3}, {2, 3}, {3}, {}}, 4'097_B);
  EXPECT_EQ(estimate_packets(graph, cluster, {}, 1).packet_hops, 24u);
  EXPECT_EQ(simulate(graph, cluster, kPackets).statistics.packet_hops, 24u);
}

TEST(PacketEstimateTest, IsCloseForLargeCollectives) {
  // 64 members send 126 messages each, 8,064 in all: every third one is looked at. 65,536 bytes a
  // message are 16 packets over one link of the ring.
  const Cluster cluster = ring_of(64, 50_GBps);
  const PacketEstimate estimate = estimate_packets(all_reduce(64), cluster, {}, 1);
  EXPECT_NEAR(static_cast<double>(estimate.packet_hops), 8'064 * 16, 8'064 * 16 * 0.001);
}

}  // namespace
}  // namespace stepsim
