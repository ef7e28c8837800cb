// Copies to hosts, work on hosts, and switches with limited reduction rates: which of them share a
// link or an adder.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/hardware/hosts.h"
#include "sim/program/graph_by_hand.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

// Two hosts of four chips, two on an uplink of 30 GB/s; links of 20 GB/s.
Cluster two_hosts(Bandwidth memory = 1000_GBps, Duration latency = {}) {
  Cluster cluster = one_node(8, 100_GBps);
  cluster.hosts = add_hosts({.link_bandwidth = 20_GBps,
                             .link_latency = latency,
                             .chips = 4,
                             .uplink_chips = 2,
                             .uplink_bandwidth = 30_GBps,
                             .memory_bandwidth = memory,
                             .memory_capacity = 100_GB},
                            cluster.places, cluster.fabric);
  return cluster;
}

// Returns when each of `ranks` ends. Its copies all start at once.
std::vector<double> seconds(const Cluster& cluster, const std::vector<std::uint32_t>& ranks,
                            const std::vector<HostWork>& works) {
  GraphByHand hand(8);
  for (const std::uint32_t rank : ranks) {
    for (const HostWork& work : works) hand.host(rank, hand.stream(rank, "host"), work);
  }
  const OpGraph graph = hand.build();
  const SimulationResult result = simulate(graph, cluster, {});
  std::vector<double> exposed;
  for (const std::uint32_t rank : ranks) {
    exposed.push_back(
        to_seconds(result.breakdowns[rank]
                       .exposed_communication[static_cast<std::size_t>(GraphByHand::kHost)]));
  }
  return exposed;
}

TEST(HostsTest, ChipsAreDealtToHostsAndUplinks) {
  const Cluster cluster = two_hosts();
  ASSERT_EQ(cluster.hosts.of_chip.size(), 8U);
  EXPECT_EQ(cluster.hosts.count, 2U);
  const auto names = [&](const std::vector<LinkId>& links) {
    std::string text;
    for (const LinkId link : links) text += cluster.fabric.link_name(link) + " ";
    return text;
  };
  EXPECT_EQ(names(cluster.hosts.of_chip[3].out),
            "node0.gpu3>host0.uplink1 host0.uplink1>host0 host0.memory ");
  EXPECT_EQ(names(cluster.hosts.of_chip[4].in),
            "host1.memory host1>host1.uplink0 host1.uplink0>node0.gpu4 ");
  EXPECT_EQ(cluster.hosts.of_chip[3].host, HostId(0));
}

TEST(HostsTest, EveryProblemIsNamed) {
  EXPECT_TRUE(check(HostSpec{}).empty()) << "no host";
  const std::vector<Problem> problems =
      check({.link_bandwidth = 20_GBps, .chips = 8, .uplink_chips = 3});
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].field, "uplink_chips");
  EXPECT_EQ(problems[1].field, "memory_bandwidth");
  EXPECT_EQ(problems[2].field, "memory_capacity");
}

TEST(HostsTest, ACopyTakesItsBytesOverTheLink) {
  const HostWork out{.action = HostAction::kCopyOut, .bytes = 10_GB};
  EXPECT_EQ(seconds(two_hosts(), {0}, {out}), std::vector<double>{0.5});
  EXPECT_EQ(seconds(two_hosts(1000_GBps, 1ms), {0}, {out}), std::vector<double>{0.501});
}

TEST(HostsTest, ChipsOfAnUplinkShareIt) {
  const HostWork out{.action = HostAction::kCopyOut, .bytes = 15_GB};
  EXPECT_EQ(seconds(two_hosts(), {0, 1}, {out}), (std::vector<double>{1, 1})) << "15 GB/s each";
  EXPECT_EQ(seconds(two_hosts(), {0, 2}, {out}), (std::vector<double>{0.75, 0.75}));
}

TEST(HostsTest, DirectionsDoNotDisturbEachOtherUntilTheMemoryDoes) {
  const std::vector<HostWork> both{{.action = HostAction::kCopyOut, .bytes = 10_GB},
                                   {.action = HostAction::kCopyIn, .bytes = 10_GB}};
  EXPECT_EQ(seconds(two_hosts(), {0}, both), std::vector<double>{0.5});
  EXPECT_EQ(seconds(two_hosts(20_GBps), {0}, both), std::vector<double>{1});
  EXPECT_EQ(seconds(two_hosts(20_GBps), {0, 4}, both), (std::vector<double>{1, 1})) << "two hosts";
}

TEST(HostsTest, WorkOfTheHostIsBoundByItsMemory) {
  const HostWork update{.action = HostAction::kUpdate, .bytes = 50_GB};
  EXPECT_EQ(seconds(two_hosts(100_GBps), {0}, {update}), std::vector<double>{0.5});
  EXPECT_EQ(seconds(two_hosts(100_GBps), {0, 1, 2}, {update}),
            (std::vector<double>{1.5, 1.5, 1.5}));
}

// A copy has one way. 1 GB in packets of 1 MB over three links, of which the first is the slowest.
TEST(HostsTest, SprayedPacketsOfACopyKeepItsWay) {
  GraphByHand hand(8);
  hand.host(0, hand.stream(0, "host"), {.action = HostAction::kCopyOut, .bytes = 1_GB});
  const Cluster cluster = two_hosts();
  const SimulationResult result = simulate(
      hand.build(), cluster,
      {.fidelity = Fidelity::kPacket,
       .granularity = Granularity::kStepped,
       .packets = {.packet_bytes = Bytes(1'000'000),
                   .spraying = PacketSpraying{.router = cluster.router.get(), .routes = 4}}});
  EXPECT_NEAR(to_seconds(result.step_time), 0.05, 0.001);
}

TEST(HostsTest, CopiesRunBesideComputeAndAreCounted) {
  GraphByHand hand(8);
  hand.compute_for(0, 300ms);
  const StreamId out = hand.stream(0, "out");
  const StreamId in = hand.stream(0, "in");
  const OpRef gone =
      hand.host(0, out, {.action = HostAction::kCopyOut, .bytes = 4_GB, .stays = true});
  const OpRef more =
      hand.host(0, out, {.action = HostAction::kCopyOut, .bytes = 2_GB, .stays = true});
  const OpRef back = hand.host(0, in, {.action = HostAction::kCopyIn, .bytes = 4_GB, .stays = true},
                               {after(gone)});
  hand.compute_for(0, 100ms, {after(back)});
  hand.host(0, in, {.action = HostAction::kCopyIn, .bytes = 2_GB, .stays = true}, {after(more)});
  const OpGraph graph = hand.build();
  const SimulationResult result = simulate(graph, two_hosts(), {});
  EXPECT_EQ(result.step_time, 500ms) << "200 ms out, 200 ms in, 100 ms compute";
  EXPECT_EQ(
      result.breakdowns[0].exposed_communication[static_cast<std::size_t>(GraphByHand::kHost)],
      100ms);
  EXPECT_EQ(result.bytes_by_axis[static_cast<std::size_t>(GraphByHand::kHost)], 12_GB);
  EXPECT_EQ(result.host_peaks, (std::vector<Bytes>{6_GB, Bytes(0)}));
}

// ---- Switches that add ----

double all_reduce_ms(Cluster cluster, std::uint32_t groups, CollectiveOp op, std::int64_t adders) {
  cluster.adders = add_adders(Bandwidth(1e9 * static_cast<double>(adders)), cluster.fabric);
  GraphByHand hand(8);
  const std::uint32_t size = 8 / groups;
  for (std::uint32_t group = 0; group < groups; ++group) {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t i = 0; i < size; ++i) ranks.push_back(group * size + i);
    const CommunicatorId of = hand.communicator(ranks);
    for (const std::uint32_t rank : ranks) {
      hand.collective(
          rank, hand.stream(rank, "dp"),
          {.communicator = of, .op = op, .bytes = 1_GB, .algorithm = AlgorithmChoice::kNvls});
    }
  }
  const OpGraph graph = hand.build();
  return 1e3 * to_seconds(simulate(graph, cluster, {}).step_time);
}

// 8 members bring 8 GB of operands; links of 100 GB/s take 10 ms.
TEST(SwitchAddersTest, LimitSumsOfTheSwitch) {
  const auto with = [&](std::uint32_t groups, CollectiveOp op, std::int64_t adders) {
    return all_reduce_ms(one_node(8, 100_GBps), groups, op, adders);
  };
  EXPECT_DOUBLE_EQ(with(1, CollectiveOp::kAllReduce, 800), 10);
  EXPECT_DOUBLE_EQ(with(1, CollectiveOp::kAllReduce, 400), 20);
  EXPECT_DOUBLE_EQ(with(1, CollectiveOp::kReduceScatter, 350), 20) << "7/8 of the operands";
  EXPECT_DOUBLE_EQ(with(1, CollectiveOp::kAllGather, 1), 8.75) << "nothing is added";
}

TEST(SwitchAddersTest, TreesThatRunAtOnceShareThem) {
  const auto with = [&](std::uint32_t groups, std::int64_t adders) {
    return all_reduce_ms(one_node(8, 100_GBps), groups, CollectiveOp::kAllReduce, adders);
  };
  EXPECT_DOUBLE_EQ(with(2, 800), 10);
  EXPECT_DOUBLE_EQ(with(2, 400), 20) << "two groups of four bring as much as one of eight";
}

}  // namespace
}  // namespace stepsim
