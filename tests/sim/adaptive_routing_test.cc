// Adaptive routing in all three networks: groups of links against the links one by one, closed
// forms of permutations that collide on static routes, packets that choose, faults, whole programs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/choose_algorithm.h"
#include "sim/network/flow_network.h"
#include "sim/network/latency_bandwidth_network.h"
#include "sim/network/packets/packet_network.h"
#include "sim/run/checks.h"
#include "sim/run/make_network.h"
#include "tests/support/idle_collective.h"
#include "tests/support/routes.h"
#include "topology/faults.h"
#include "topology/kinds/switched/fat_tree.h"
#include "topology/kinds/switched/leaf_spine.h"
#include "topology/kinds/switched/nvlink_domain.h"

namespace stepsim {
namespace {

using namespace literals;

constexpr PathChoice kAdaptive{.rule = PathRule::kAdaptive};
constexpr PacketOptions kThousand{.packet_bytes = 1'000_B};

// Links of 1 GB/s: a packet of 1,000 bytes takes 1 us.
LeafSpineSpec leaf_spine(int leaves, int hosts, int spines, const PathChoice& routing) {
  return {.leaves = leaves,
          .hosts_per_leaf = hosts,
          .spines = spines,
          .host_bandwidth = 1_GBps,
          .oversubscription = 1,
          .routing = routing};
}

std::vector<LinkUse> uses_of(const BuiltTopology& built, std::uint32_t from, std::uint32_t to,
                             bool spread) {
  std::vector<LinkUse> uses;
  for (const LinkId link : route(built, from, to)) {
    uses.push_back(spread ? built.fabric.spread(link) : LinkUse{link, 1});
  }
  return uses;
}

struct Send {
  std::uint32_t from;
  std::uint32_t to;
  Bytes bytes;
};

// When each message ends that starts at 0; carried bytes are those of `network` after that.
std::map<std::uint32_t, Duration> ends_of(Network& network,
                                          const std::vector<std::vector<LinkUse>>& uses,
                                          const std::vector<Send>& sends) {
  for (std::uint32_t i = 0; i < sends.size(); ++i) {
    network.start(Time{}, TransferId(i), {.bytes = sends[i].bytes, .latency = {}, .uses = uses[i]});
  }
  network.settle(Time{});
  std::map<std::uint32_t, Duration> ends;
  std::vector<TransferId> done;
  while (const std::optional<Time> next = network.next_event()) {
    done.clear();
    network.advance(*next, done);
    for (const TransferId id : done) ends[id.index()] = next->since_start;
    network.settle(*next);
  }
  return ends;
}

std::map<std::uint32_t, Duration> ends_of(Network& network, const BuiltTopology& built,
                                          const std::vector<Send>& sends, bool spread) {
  std::vector<std::vector<LinkUse>> uses;
  for (const Send& send : sends) uses.push_back(uses_of(built, send.from, send.to, spread));
  return ends_of(network, uses, sends);
}

Duration last(const std::map<std::uint32_t, Duration>& ends) {
  Duration last{};
  for (const auto& [id, end] : ends) last = std::max(last, end);
  return last;
}

// --- A group stands for its links ----------------------------------------------------------------

// Every shortest path is followed port by port; at each switch the message splits evenly.
void split(const BuiltTopology& built, const std::vector<LinkId>& route, std::size_t hop,
           NodeId node, double share, std::map<LinkId, double>& weights) {
  if (hop == route.size()) return;
  const auto group = built.fabric.group_of(route[hop]);
  std::vector<LinkId> ports{route[hop]};
  if (group) {
    const auto all = built.fabric.alternatives(*group, node);
    ports.assign(all.begin(), all.end());
  }
  ASSERT_FALSE(ports.empty());
  for (const LinkId port : ports) {
    const double each = share / static_cast<double>(ports.size());
    weights[port] += each;
    split(built, route, hop + 1, built.fabric.link(port).to, each, weights);
  }
}

void expect_groups_are_their_links(const BuiltTopology& adaptive, const BuiltTopology& fixed) {
  const auto chips = static_cast<std::uint32_t>(adaptive.places.chips.size());
  std::mt19937 generator(7);
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  std::vector<Send> sends;
  std::vector<std::vector<LinkUse>> one_by_one;
  for (int i = 0; i < 60; ++i) {
    const std::uint32_t from = random() % chips;
    const std::uint32_t to = (from + 1 + random() % (chips - 1)) % chips;
    sends.push_back({from, to, Bytes(1'000'000 + std::int64_t{random()} % 9'000'000)});
    std::map<LinkId, double> weights;
    split(adaptive, route(adaptive, from, to), 0, adaptive.places.chips[from], 1, weights);
    one_by_one.emplace_back();
    for (const auto& [link, weight] : weights) one_by_one.back().push_back({link, weight});
  }
  FlowNetwork of_groups(adaptive.fabric);
  FlowNetwork of_links(fixed.fabric);
  const auto ends = ends_of(of_groups, adaptive, sends, true);
  const auto expected = ends_of(of_links, one_by_one, sends);
  ASSERT_EQ(ends.size(), sends.size());
  for (const auto& [id, end] : ends) {
    EXPECT_NEAR(to_seconds(end) / to_seconds(expected.at(id)), 1, 1e-9) << id;
  }
  const Time over{last(ends)};
  for (std::uint32_t link = 0; link < adaptive.fabric.links().size(); ++link) {
    EXPECT_NEAR(of_groups.carried(LinkId(link), over), of_links.carried(LinkId(link), over), 1)
        << adaptive.fabric.link_name(LinkId(link));
  }
}

TEST(AdaptiveRoutingTest, AGroupIsItsLinksWithEqualWeights) {
  expect_groups_are_their_links(build(leaf_spine(4, 4, 3, kAdaptive)),
                                build(leaf_spine(4, 4, 3, {})));
  FatTreeSpec tree{.switch_ports = 4, .tiers = 3, .taper = 2, .link_bandwidth = 1_GBps};
  const BuiltTopology fixed = build(tree);
  tree.routing = kAdaptive;
  expect_groups_are_their_links(build(tree), fixed);
}

TEST(AdaptiveRoutingTest, UnequalLinksCarrySharesOfTheirBandwidth) {
  // 18 links to four switches, 1 GB/s each: 5, 4, 4 and 5.
  const BuiltTopology built = build(NvlinkDomainSpec{
      .gpus = 8, .gpu_bandwidth = 18_GBps, .links_per_switch = {5, 4, 4, 5}, .routing = kAdaptive});
  FlowNetwork network(built.fabric);
  EXPECT_EQ(ends_of(network, built, {{0, 1, 18'000'000_B}}, true)[0], Duration(1ms));
  double together = 0;
  for (const LinkId link : built.fabric.groups()[0].links) {
    const double carried = network.carried(link, Time{1ms});
    EXPECT_NEAR(carried, built.fabric.link(link).bandwidth.value() * 1e-3, 1);
    together += carried;
  }
  EXPECT_NEAR(together, 18e6, 1e-3);
}

// --- Permutations --------------------------------------------------------------------------------

// From each host of leaf 0 to a host of a leaf of its own, all of them 0 modulo the four spines:
// by destination they meet on one uplink.
std::vector<Send> meeting_sends() {
  return {{0, 4, 4'000'000_B}, {1, 8, 4'000'000_B}, {2, 12, 4'000'000_B}, {3, 16, 4'000'000_B}};
}

TEST(AdaptiveRoutingTest, MessagesThatMeetOnStaticRoutesDoNot) {
  const BuiltTopology fixed = build(leaf_spine(5, 4, 4, {}));
  const BuiltTopology adaptive = build(leaf_spine(5, 4, 4, kAdaptive));
  FlowNetwork of_fixed(fixed.fabric);
  FlowNetwork of_adaptive(adaptive.fabric);
  EXPECT_EQ(last(ends_of(of_fixed, fixed, meeting_sends(), true)), Duration(16ms));
  EXPECT_EQ(last(ends_of(of_adaptive, adaptive, meeting_sends(), true)), Duration(4ms));
  for (const BuiltTopology* built : {&fixed, &adaptive}) {
    const auto network = make_latency_bandwidth_network(built->fabric);
    EXPECT_EQ(last(ends_of(*network, *built, meeting_sends(), true)), Duration(4ms))
        << "shares no link";
  }
}

TEST(AdaptiveRoutingTest, PacketsChooseTheShortestQueue) {
  const BuiltTopology fixed = build(leaf_spine(5, 4, 4, {}));
  const BuiltTopology adaptive = build(leaf_spine(5, 4, 4, kAdaptive));
  for (const std::optional<Bytes> buffer : {std::optional<Bytes>(), std::optional(16'000_B)}) {
    PacketOptions options = kThousand;
    options.buffer_bytes = buffer;
    const auto of_fixed = make_packet_network(fixed.fabric, options);
    const auto of_adaptive = make_packet_network(adaptive.fabric, options);
    EXPECT_GE(last(ends_of(*of_fixed, fixed, meeting_sends(), false)), Duration(16ms));
    // 4,000 packets of 1 us and three more links: none waits, since four packets that come to the
    // leaf together find four ports that have just become free.
    EXPECT_EQ(last(ends_of(*of_adaptive, adaptive, meeting_sends(), false)), Duration(4003us));
    EXPECT_EQ(of_adaptive->statistics().packet_hops, 4u * 4'000 * 4);
    const std::vector<LinkId>& uplinks = adaptive.fabric.groups()[0].links;
    ASSERT_EQ(uplinks.size(), 4u);
    for (const LinkId link : uplinks) {
      EXPECT_EQ(of_adaptive->carried(link, Time{1s}), 4e6) << adaptive.fabric.link_name(link);
    }
  }
}

TEST(AdaptiveRoutingTest, PacketsComeNearTheFluidWhereAllHostsSend) {
  // A random permutation of 128 hosts of a fat tree of 8 ports: full bisection, so the fluid takes
  // what a message takes alone. Switches see only their own queues, so packets still meet further
  // on; that costs some per cent, where routes by destination cost a factor.
  FatTreeSpec tree{.switch_ports = 8, .tiers = 3, .link_bandwidth = 1_GBps};
  const BuiltTopology fixed = build(tree);
  tree.routing = kAdaptive;
  const BuiltTopology adaptive = build(tree);
  std::vector<std::uint32_t> to(128);
  for (std::uint32_t i = 0; i < to.size(); ++i) to[i] = i;
  std::mt19937 random(3);
  std::shuffle(to.begin(), to.end(), random);
  std::vector<Send> sends;
  for (std::uint32_t from = 0; from < to.size(); ++from) {
    if (from != to[from]) sends.push_back({from, to[from], 400'000_B});
  }
  FlowNetwork flows(adaptive.fabric);
  FlowNetwork fixed_flows(fixed.fabric);
  const auto packets = make_packet_network(adaptive.fabric, kThousand);
  const Duration fluid = last(ends_of(flows, adaptive, sends, true));
  EXPECT_EQ(fluid, Duration(400us));
  EXPECT_GT(last(ends_of(fixed_flows, fixed, sends, true)), 2 * fluid);
  const Duration of_packets = last(ends_of(*packets, adaptive, sends, false));
  EXPECT_GE(of_packets, fluid);
  EXPECT_LT(of_packets, Duration(460us));
}

TEST(AdaptiveRoutingTest, ASourceWithSeveralPortsSpreadsItsPackets) {
  const BuiltTopology built = build(NvlinkDomainSpec{
      .gpus = 4, .gpu_bandwidth = 4_GBps, .links_per_switch = {1, 1, 1, 1}, .routing = kAdaptive});
  for (const std::optional<Bytes> buffer : {std::optional<Bytes>(), std::optional(4'000_B)}) {
    PacketOptions options = kThousand;
    options.buffer_bytes = buffer;
    const auto network = make_packet_network(built.fabric, options);
    // 4,000 packets over four links of 1 us a packet, and one link more.
    EXPECT_EQ(ends_of(*network, built, {{0, 1, 4'000'000_B}}, false)[0], Duration(1001us));
  }
}

TEST(AdaptiveRoutingTest, ATransferThatKeepsItsLinksIsNotMoved) {
  const BuiltTopology built = build(leaf_spine(2, 4, 4, kAdaptive));
  const LinkId link = built.fabric.groups()[0].links[2];
  for (const std::optional<Bytes> buffer : {std::optional<Bytes>(), std::optional(4'000_B)}) {
    PacketOptions options = kThousand;
    options.buffer_bytes = buffer;
    const auto network = make_packet_network(built.fabric, options);
    const std::vector<LinkUse> uses{{link, 1}};
    network->start(Time{}, TransferId(0),
                   {.bytes = 8'000_B, .latency = {}, .uses = uses, .keeps_links = true});
    network->settle(Time{});
    std::vector<TransferId> done;
    while (const auto next = network->next_event()) network->advance(*next, done);
    EXPECT_EQ(network->carried(link, Time{1s}), 8'000);
  }
}

// Bytes that cross one link of a group leave less of the group for spread traffic.
TEST(AdaptiveRoutingTest, TrafficOnOneLinkPushesTheRestAside) {
  const BuiltTopology built = build(leaf_spine(2, 4, 2, kAdaptive));  // two uplinks of 2 GB/s
  const LinkId link = built.fabric.groups()[0].links[0];
  FlowNetwork network(built.fabric);
  std::vector<std::vector<LinkUse>> uses{{{link, 1}, built.fabric.spread(link)}};
  std::vector<Send> sends{{0, 4, 20'000'000_B}};
  for (std::uint32_t host = 0; host < 4; ++host) {
    sends.push_back({host, host + 4, 2'000'000_B});
    uses.push_back(uses_of(built, host, host + 4, true));
  }
  // Rates r of all five share the uplinks' 4 GB/s: 0.8 GB/s each. The four end at 2.5 ms; the one
  // on the link alone has then moved 2 MB, and goes on at 2 GB/s.
  const auto ends = ends_of(network, uses, sends);
  EXPECT_EQ(ends.at(1), Duration(2500us));
  EXPECT_EQ(ends.at(0), Duration(11'500us));
  const Time over{11'500us};
  double together = 0;
  for (const LinkId other : built.fabric.groups()[0].links) {
    together += network.carried(other, over);
  }
  EXPECT_NEAR(together, 28e6, 1);
  EXPECT_NEAR(network.carried(link, over), 24e6, 1);
}

// --- Faults --------------------------------------------------------------------------------------

TEST(AdaptiveRoutingTest, PacketsAvoidSpinesThatDoNotReachTheirLeaf) {
  BuiltTopology whole = build(leaf_spine(3, 4, 4, kAdaptive));
  const Faults faults{
      .links = {{.link = "leaf0>spine1", .down = true}, {.link = "spine2>leaf1", .down = true}}};
  ASSERT_TRUE(check(faults, whole).empty());
  const BuiltTopology built = apply(faults, std::move(whole));
  std::map<std::string, LinkId> links;
  for (std::uint32_t link = 0; link < built.fabric.links().size(); ++link) {
    links[built.fabric.link_name(LinkId(link))] = LinkId(link);
  }
  const auto group = built.fabric.group_of(links.at("leaf0>spine0"));
  ASSERT_TRUE(group);
  EXPECT_EQ(built.fabric.group(*group).links.size(), 3u);
  EXPECT_EQ(built.fabric.group(*group).down, 1u);
  // Two hosts send to leaf 1, where only spines 0 and 3 lead, and one to leaf 2.
  const std::vector<Send> sends{{0, 4, 1'000'000_B}, {1, 5, 1'000'000_B}, {2, 8, 1'000'000_B}};
  for (const std::optional<Bytes> buffer : {std::optional<Bytes>(), std::optional(16'000_B)}) {
    PacketOptions options = kThousand;
    options.buffer_bytes = buffer;
    const auto network = make_packet_network(built.fabric, options);
    EXPECT_LT(last(ends_of(*network, built, sends, false)), Duration(1100us));
    const auto carried = [&](const char* name) {
      return network->carried(links.at(name), Time{1s});
    };
    EXPECT_EQ(carried("spine0>leaf1") + carried("spine3>leaf1"), 2e6);
    EXPECT_EQ(carried("spine1>leaf1"), 0);
    EXPECT_GT(carried("leaf0>spine2"), 0) << "leads to leaf 2";
    EXPECT_EQ(carried("spine2>leaf2"), carried("leaf0>spine2"));
  }
  // In the fluid model three uplinks carry what four would have carried.
  FlowNetwork flows(built.fabric);
  EXPECT_EQ(
      last(ends_of(
          flows, built,
          {{0, 4, 3'000'000_B}, {1, 5, 3'000'000_B}, {2, 8, 3'000'000_B}, {3, 9, 3'000'000_B}},
          true)),
      Duration(4ms));
}

TEST(AdaptiveRoutingTest, ASlowLinkCarriesLess) {
  const BuiltTopology built = apply({.links = {{.link = "leaf0>spine1", .capacity = 0.5}}},
                                    build(leaf_spine(2, 4, 4, kAdaptive)));
  // 3.5 GB/s of uplinks for four hosts.
  std::vector<Send> sends;
  for (std::uint32_t host = 0; host < 4; ++host) sends.push_back({host, host + 4, 3'500'000_B});
  FlowNetwork flows(built.fabric);
  EXPECT_EQ(last(ends_of(flows, built, sends, true)), Duration(4ms));
  for (const LinkId link : built.fabric.groups()[0].links) {
    EXPECT_NEAR(flows.carried(link, Time{4ms}), built.fabric.link(link).bandwidth.value() * 4e-3,
                1);
  }
}

// --- Whole programs ------------------------------------------------------------------------------

Cluster six_nodes(const PathChoice& routing) {
  DgxSuperPodSpec spec;
  spec.nodes = 6;
  spec.gpus_per_node = 2;
  spec.nodes_per_scalable_unit = 2;
  spec.nvlink_bandwidth = 450_GBps;
  spec.nic_bandwidth = 50_GBps;
  spec.network_link_latency = 500ns;
  spec.switch_ports = 4;
  spec.routing = routing;
  return cluster_of(spec);
}

// 100 bytes were routed over each link of one group, and nothing moved. The checks have to see it,
// whichever group or link it is.
TEST(AdaptiveRoutingTest, BytesThatNobodyCarriedAreFound) {
  const Cluster cluster = six_nodes(kAdaptive);
  const Fabric& fabric = cluster.fabric;
  const auto network = make_network(cluster, cluster.fabric, {});
  const std::vector<ExactBytes> nothing(fabric.links_and_groups());
  EXPECT_NO_THROW(check_links(fabric, nothing, *network, Time{}));
  for (std::size_t i = 0; i < nothing.size(); ++i) {
    if (i < fabric.links().size() && fabric.group_of(LinkId(static_cast<std::uint32_t>(i)))) {
      continue;  // counts with its group
    }
    std::vector<ExactBytes> routed = nothing;
    routed[i] = ExactBytes(100_B);
    EXPECT_THROW(check_links(fabric, routed, *network, Time{}), std::logic_error) << i;
  }
}

// In every network this relies on the always-on checks of simulate().
TEST(AdaptiveRoutingTest, LinksCarryWhatWasRoutedInEveryNetwork) {
  const Cluster cluster = six_nodes(kAdaptive);
  ASSERT_GT(cluster.fabric.groups().size(), 6u) << "leaves, pods and cores";
  const GroupShape shape = shape_of(cluster);
  int runs = 0;
  for (const CollectiveOp op :
       {CollectiveOp::kAllReduce, CollectiveOp::kAllGather, CollectiveOp::kAllToAll}) {
    for (const AlgorithmChoice choice : algorithms_for(op, shape)) {
      const CollectiveWork work{
          .communicator = CommunicatorId(0), .op = op, .bytes = 6'000'000_B, .algorithm = choice};
      const OpGraph graph = graph_of(cluster, work);
      for (const Fidelity fidelity : {Fidelity::kFlow, Fidelity::kLatencyBandwidth}) {
        for (const Granularity granularity : {Granularity::kPipelined, Granularity::kStepped}) {
          EXPECT_NO_THROW(
              simulate(graph, cluster, {.fidelity = fidelity, .granularity = granularity}))
              << name_of(choice);
        }
      }
      SimulationOptions packets{.fidelity = Fidelity::kPacket,
                                .granularity = Granularity::kStepped};
      EXPECT_NO_THROW(simulate(graph, cluster, packets)) << name_of(choice);
      packets.packets.buffer_bytes = 64'000_B;
      EXPECT_NO_THROW(simulate(graph, cluster, packets)) << name_of(choice);
      packets.packets.spraying = PacketSpraying{.routes = 4};
      EXPECT_NO_THROW(simulate(graph, cluster, packets)) << name_of(choice);
      ++runs;
    }
  }
  EXPECT_GT(runs, 9);
}

TEST(AdaptiveRoutingTest, TheOrderOfSimultaneousOpsChangesNothing) {
  const Cluster cluster = six_nodes(kAdaptive);
  const OpGraph graph = graph_of(cluster, {.communicator = CommunicatorId(0),
                                           .op = CollectiveOp::kAllToAll,
                                           .bytes = 3'000'000_B,
                                           .algorithm = AlgorithmChoice::kDirect});
  for (const Fidelity fidelity : {Fidelity::kFlow, Fidelity::kPacket}) {
    SimulationOptions options{.fidelity = fidelity, .granularity = Granularity::kStepped};
    const Duration expected = simulate(graph, cluster, options).step_time;
    for (const std::uint32_t seed : {1U, 2U, 3U, 4U, 5U}) {
      options.shuffle_seed = seed;
      EXPECT_EQ(simulate(graph, cluster, options).step_time, expected);
    }
  }
}

}  // namespace
}  // namespace stepsim
