// On an idle network each algorithm takes its closed form
// (books/collective_forms/collective_formulas.h, FORMULAS groups B and C) within 0.1 %, stepped
// and pipelined. Exceptions are written beside the case.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "books/collective_forms/collective_formulas.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/hardware/group_shape.h"
#include "tests/support/idle_collective.h"
#include "workload/expert_routing.h"

namespace stepsim {
namespace {

using namespace literals;
using Op = CollectiveOp;
using Choice = AlgorithmChoice;

constexpr Granularity kBoth[] = {Granularity::kPipelined, Granularity::kStepped};

Cluster torus(std::vector<int> sizes, bool wraps, Duration latency) {
  TorusSpec spec;
  for (const int size : sizes) spec.axes.push_back({size, wraps});
  spec.link_bandwidth = 90_GBps;
  spec.link_latency = latency;
  return cluster_of(spec);
}

// Returns 0 if there is no exact formula.
double formula(const GroupShape& shape, const CollectiveWork& work, Granularity granularity,
               Bandwidth bandwidth, Duration trip) {
  std::vector<FormulaLevel> levels;
  for (const GroupDimension& dimension : shape.dimensions) {
    levels.push_back({.size = dimension.size,
                      .torus_axis = dimension.torus_axis,
                      .wraps = dimension.wraps,
                      .bandwidth = bandwidth,
                      .trip = trip});
  }
  const auto algorithm =
      choose_algorithm({.op = work.op, .bytes = work.bytes, .root = work.root, .shift = work.shift},
                       work.algorithm, shape);
  const auto result = collective_formula({.op = work.op,
                                          .algorithm = work.algorithm,
                                          .bytes = work.bytes,
                                          .levels = levels,
                                          .rounds = algorithm->rounds(),
                                          .lanes = algorithm->lanes(),
                                          .overlapped = granularity == Granularity::kPipelined});
  return result && result->exact ? result->seconds : 0;
}

void expect_close(double simulated, double expected, const std::string& what) {
  EXPECT_NEAR(simulated / expected, 1.0, 1e-3) << what;
}

std::string text(const CollectiveWork& work, std::size_t members, Granularity granularity) {
  return std::string(name_of(work.op)) + " " + std::string(name_of(work.algorithm)) + " of " +
         std::to_string(members) + " " + std::string(name_of(granularity));
}

// On one switch only ports count, so every algorithm with a closed form takes exactly that.
TEST(CollectiveTimesTest, EveryAlgorithmTakesItsClosedFormOnASwitch) {
  int cases = 0;
  for (const int n : {2, 3, 4, 7, 8, 16, 24}) {
    const Cluster cluster = one_node(n, 450_GBps, 500ns);
    const GroupShape shape = shape_of(cluster);
    for (const Op op : kCollectiveOps) {
      for (const Choice choice : algorithms_for(op, shape)) {
        for (const Granularity granularity : kBoth) {
          const CollectiveWork work{.communicator = CommunicatorId(0),
                                    .op = op,
                                    .bytes = op == Op::kBarrier ? Bytes(0) : Bytes(1'008'000'000),
                                    .algorithm = choice,
                                    .root = 1};
          const double expected = formula(shape, work, granularity, 450_GBps, 1us);
          if (expected == 0) continue;
          ++cases;
          const std::string what = text(work, shape.members(), granularity);
          expect_close(simulated(cluster, work, granularity), expected, what);
        }
      }
    }
  }
  EXPECT_GT(cases, 280);
}

// Written out: 8 members, 450 GB/s, trips of 1 us, S = 1.008 GB.
TEST(CollectiveTimesTest, TheClosedFormsAreThoseOfTheBooks) {
  const Cluster cluster = one_node(8, 450_GBps, 500ns);
  const double whole = 1.008e9 / 450e9;
  struct Case {
    Op op;
    Choice choice;
    double seconds;
  };
  for (const Case& of : {
           Case{Op::kAllReduce, Choice::kRing, 2 * (7.0 / 8 * whole + 7e-6)},             // C1
           Case{Op::kAllReduce, Choice::kHalvingDoubling, 2 * (7.0 / 8 * whole + 3e-6)},  // C6
           Case{Op::kAllReduce, Choice::kRecursiveDoubling, 3 * (whole + 1e-6)},          // C6
           Case{Op::kAllReduce, Choice::kReduceBroadcast, 14 * whole + 8e-6},             // C3
           Case{Op::kAllToAll, Choice::kDirect, 7.0 / 8 * whole + 1e-6},                  // C7
           Case{Op::kAllToAll, Choice::kPairwise, 7.0 / 8 * whole + 7e-6},                // C7
           Case{Op::kBroadcast, Choice::kBinomialTree, 3 * (whole + 1e-6)},               // C24
           Case{Op::kGather, Choice::kDirect, 7.0 / 8 * whole + 1e-6},                    // C24
           Case{Op::kScatter, Choice::kDirect, 7.0 / 8 * whole + 1e-6},                   // C24
           // 1,024 chunks at most, which six members store and forward.
           Case{Op::kBroadcast, Choice::kChain, whole + 6 * (whole / 1024 + 1e-6) + 1e-6},
           Case{Op::kSendReceive, Choice::kDirect, whole + 1e-6},
       }) {
    const CollectiveWork work{.communicator = CommunicatorId(0),
                              .op = of.op,
                              .bytes = Bytes(1'008'000'000),
                              .algorithm = of.choice};
    expect_close(simulated(cluster, work, Granularity::kStepped), of.seconds,
                 text(work, 8, Granularity::kStepped));
  }
}

// An inner node of one tree sends a chunk of it three times and one of the other tree once: 2 S/W,
// and the pipeline is filled and emptied once.
TEST(CollectiveTimesTest, ADoubleBinaryTreeSendsTwiceTheDataThroughItsPorts) {
  for (const int n : {8, 15, 32}) {
    const Cluster cluster = one_node(n, 450_GBps);
    const CollectiveWork work{.communicator = CommunicatorId(0),
                              .op = Op::kAllReduce,
                              .bytes = Bytes(1'008'000'000),
                              .algorithm = Choice::kDoubleBinaryTree};
    expect_close(simulated(cluster, work, Granularity::kPipelined), 2 * 1.008e9 / 450e9, "ports");
    const double seconds = simulated(cluster, work, Granularity::kStepped);
    EXPECT_GT(seconds, 2 * 1.008e9 / 450e9 * 0.999) << n;
    EXPECT_LT(seconds, 2 * 1.008e9 / 450e9 * 1.1) << n;
  }
}

Cluster superpod(int nodes, Bandwidth nvlink, Bandwidth nic, Duration latency = {}) {
  DgxSuperPodSpec spec;
  spec.nodes = nodes;
  spec.nvlink_bandwidth = nvlink;
  spec.nic_bandwidth = nic;
  spec.nvlink_latency = latency;
  spec.network_link_latency = latency;
  return cluster_of(spec);
}

double time_of(const Cluster& cluster, Op op, Choice choice, Bytes bytes, Granularity granularity) {
  const CollectiveWork work{
      .communicator = CommunicatorId(0), .op = op, .bytes = bytes, .algorithm = choice};
  return simulated(cluster, work, granularity);
}

// S20: 140 GB over 32 A100s in 4 nodes of eight 25 GB/s cards. One ring passes one card a node:
// 2 31/32 140e9 / 25e9 = 10.85 s. A ring a card carries an eighth each; level by level 3/4 of an
// eighth crosses a card: 2 3/4 17.5e9 / 25e9 = 1.05 s, ten times faster (C9).
TEST(CollectiveTimesTest, AFlatRingIsTenTimesSlowerThanAllCards) {
  const Cluster cluster = superpod(4, 300_GBps, 25_GBps);
  const auto seconds = [&](Choice choice, Granularity granularity) {
    return time_of(cluster, Op::kAllReduce, choice, 140_GB, granularity);
  };
  for (const Granularity granularity : kBoth) {
    expect_close(seconds(Choice::kRing, granularity), 2 * 31.0 / 32 * 140 / 25, "flat");
    expect_close(seconds(Choice::kRotatedRings, granularity), 2 * 31.0 / 32 * 140 / 25 / 8, "8");
  }
  expect_close(seconds(Choice::kHierarchical, Granularity::kPipelined), 1.05, "levels");
  expect_close(seconds(Choice::kOverlappedLevels, Granularity::kPipelined), 1.05, "levels");
  // Stepped, one of 32 chunks has nothing beside it in the node: 2 7/8 140 / 300 / 32.
  EXPECT_NEAR(seconds(Choice::kOverlappedLevels, Granularity::kStepped), 1.05, 0.03);
  // Level after level: 0.817 s in the nodes besides (S27).
  expect_close(seconds(Choice::kHierarchical, Granularity::kStepped),
               1.05 + 2 * 7.0 / 8 * 140 / 300, "level after level");
}

// On two levels with trips of 1 us: two links of 0.5 us in the node, and two over a leaf.
TEST(CollectiveTimesTest, AlgorithmsOverNodesTakeTheirClosedForms) {
  const Cluster cluster = superpod(4, 450_GBps, 50_GBps, 500ns);
  const GroupShape shape = shape_of(cluster);
  for (const Op op : {Op::kAllReduce, Op::kAllGather, Op::kReduceScatter, Op::kAllToAll}) {
    for (const Choice choice : {Choice::kRotatedRings, Choice::kOverlappedLevels, Choice::kPxn,
                                Choice::kNodeForwarding}) {
      if (!refusal(op, choice, shape).empty()) continue;
      const CollectiveWork work{.communicator = CommunicatorId(0),
                                .op = op,
                                .bytes = Bytes(3'225'600'000),
                                .algorithm = choice};
      const std::vector<FormulaLevel> levels = {{.size = 8, .bandwidth = 450_GBps, .trip = 1us},
                                                {.size = 4, .bandwidth = 50_GBps, .trip = 1us}};
      const auto algorithm = choose_algorithm({.op = op, .bytes = work.bytes}, choice, shape);
      const auto expected = collective_formula({.op = op,
                                                .algorithm = choice,
                                                .bytes = work.bytes,
                                                .levels = levels,
                                                .rounds = algorithm->rounds(),
                                                .lanes = algorithm->lanes()});
      ASSERT_TRUE(expected);
      expect_close(simulated(cluster, work, Granularity::kPipelined), expected->seconds,
                   text(work, 32, Granularity::kPipelined));
    }
  }
}

// NCCL's rings with its hops: between nodes 10 us, in them 1 us; the last byte goes all the way
// round but for one hop a pass. Two members a node have but one hop inside.
TEST(CollectiveTimesTest, TripsRoundRingsOverNodesAreThoseOfTheWay) {
  Cluster cluster = superpod(4, 450_GBps, 50_GBps);
  cluster.library.timings = {{.path = LibraryPath::kRing, .hop = {1us, 1us, 10us}},
                             {.path = LibraryPath::kMessages}};
  for (const std::uint32_t of_node : {2U, 3U, 8U}) {
    std::vector<std::uint32_t> chips;
    for (std::uint32_t chip = 0; chip < 32; ++chip) {
      if (chip % 8 < of_node) chips.push_back(chip);
    }
    const GroupShape shape = describe(cluster, chips);
    for (const Op op : {Op::kAllReduce, Op::kAllGather}) {
      const std::uint32_t passes = op == Op::kAllReduce ? 2 : 1;
      const CollectiveWork work{.communicator = CommunicatorId(0),
                                .op = op,
                                .bytes = Bytes(0),
                                .algorithm = Choice::kRotatedRings};
      GraphByHand hand(static_cast<std::uint32_t>(chips.size()));
      const CommunicatorId all = hand.communicator();
      for (std::uint32_t rank = 0; rank < chips.size(); ++rank) {
        hand.graph().ranks[rank].chip = chips[rank];
        CollectiveWork of = work;
        of.communicator = all;
        hand.collective(rank, hand.stream(rank, "dp"), of);
      }
      const OpGraph graph = hand.build();
      const double microseconds = 1e6 * to_seconds(simulate(graph, cluster, {}).step_time);
      const std::uint32_t inside = of_node - 1;
      const double left_out = passes == 1 ? 1 : inside > 1 ? 2 : 11;
      EXPECT_NEAR(microseconds, passes * 4 * (inside + 10) - left_out, 1e-6)
          << of_node << " of a node, " << name_of(op);
    }
  }
}

// Five members in one node and three in the other: three cards carry 7/8 of the data in either
// direction, 7/8 2.4 / (3 x 50) s. Four and four, though of other GPUs, have four cards.
TEST(CollectiveTimesTest, UnevenNodesHaveTheCardsOfTheSmallest) {
  const Cluster cluster = superpod(2, 450_GBps, 50_GBps);
  for (const auto& [first, cards] : {std::pair{3U, 3.0}, std::pair{4U, 4.0}}) {
    GraphByHand hand(8);
    const CommunicatorId all = hand.communicator();
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
      hand.graph().ranks[rank].chip = first + rank;
      hand.collective(rank, hand.stream(rank, "dp"),
                      {.communicator = all,
                       .op = Op::kAllGather,
                       .bytes = Bytes(2'400'000'000),
                       .algorithm = Choice::kRotatedRings});
    }
    const OpGraph graph = hand.build();
    expect_close(to_seconds(simulate(graph, cluster, {}).step_time), 7.0 / 8 * 2.4 / 50 / cards,
                 "a ring for each card");
  }
}

// S23, C12: switches add and copy: S/W, 2 (n-1)/n times faster than a ring; stepped or not. As
// packets chunks of 16.4 MB are stored and forwarded once: 1/64 more.
TEST(CollectiveTimesTest, SumsInTheSwitchTakeEachLinkOnce) {
  const Cluster node = one_node(8, 450_GBps);
  const Bytes bytes(1'008'000'000);
  const double whole = 1.008e9 / 450e9;
  for (const Choice choice : {Choice::kNvls, Choice::kSharp}) {
    for (const Granularity granularity : kBoth) {
      const double ring = time_of(node, Op::kAllReduce, Choice::kRing, bytes, granularity);
      const double summed = time_of(node, Op::kAllReduce, choice, bytes, granularity);
      expect_close(summed, whole, "S/W");
      expect_close(ring / summed, 1.75, "gain");
      expect_close(time_of(node, Op::kAllGather, choice, bytes, granularity), 7.0 / 8 * whole,
                   "all-gather");
    }
  }
  const CollectiveWork work{.communicator = CommunicatorId(0),
                            .op = Op::kAllReduce,
                            .bytes = 64_MiB,
                            .algorithm = Choice::kNvls};
  const double packets = simulated(node, work, Granularity::kStepped, Fidelity::kPacket);
  EXPECT_NEAR(packets / (67'108'864 / 450e9), 1 + 1.0 / 64, 0.01);
}

// One card of each of 48 nodes, over leaves and spines of two scalable units: every link of the
// tree carries the data once each way.
TEST(CollectiveTimesTest, ATreeOfSwitchesTakesEachLinkOnce) {
  const Cluster cluster = superpod(64, 450_GBps, 50_GBps);
  GraphByHand hand(48);
  for (std::uint32_t rank = 0; rank < 48; ++rank) hand.graph().ranks[rank].chip = 8 * rank;
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < 48; ++rank) {
    hand.collective(
        rank, hand.stream(rank, "collective"),
        {.communicator = all, .op = Op::kAllReduce, .bytes = 1_GB, .algorithm = Choice::kSharp});
  }
  const OpGraph graph = hand.build();
  expect_close(to_seconds(simulate(graph, cluster, {}).step_time), 1.0 / 50, "S/W");
}

// With all cards of the nodes: an eighth of the data over each rail's tree, 1/8 S/W; the NVLinks
// carry the whole once each way, to their switch and back. Whichever is slower.
TEST(CollectiveTimesTest, ATreeARailTakesTheSlowerOfNodeAndNetwork) {
  for (const Bandwidth card : {50_GBps, 400_GBps}) {
    const Cluster cluster = superpod(4, 450_GBps, card);
    const double expected = std::max(1 / 450e9, 1.0 / 8 / card.value()) * 2.016e9;
    for (const Granularity granularity : kBoth) {
      expect_close(
          time_of(cluster, Op::kAllReduce, Choice::kSharp, Bytes(2'016'000'000), granularity),
          expected, "rails");
    }
    const auto formula =
        collective_formula({.op = Op::kAllReduce,
                            .algorithm = Choice::kSharp,
                            .bytes = Bytes(2'016'000'000),
                            .levels = std::vector<FormulaLevel>{{.size = 8, .bandwidth = 450_GBps},
                                                                {.size = 4, .bandwidth = card}},
                            .rail_trees = true,
                            .node_trees = true});
    expect_close(formula->seconds, expected, "closed form");
  }
}

// S25: 64 experts' ranks on 8 nodes, top 8 of 256 experts, tokens of 14,336 bytes. A copy for each
// expert: 7 of 8 leave the node, over its card. A copy a node: 8 (1 - C(224, 8)/C(256, 8)) = 5.295
// nodes, 7/8 of them others. At most 4 nodes: less than half of the copies.
TEST(CollectiveTimesTest, FewerCopiesOfATokenLeaveItsNode) {
  const Cluster cluster = superpod(8, 450_GBps, 50_GBps);
  const auto seconds = [&](TokenCopies copies, std::uint32_t limit, Choice choice, bool back) {
    const ExpertTraffic traffic = route_tokens({.members = 64,
                                                .experts = 256,
                                                .top_k = 8,
                                                .tokens = 4096,
                                                .token_bytes = Bytes(14'336),
                                                .copies = copies,
                                                .members_of_node = 8,
                                                .node_limit = limit});
    GraphByHand hand(64);
    hand.graph().byte_matrices = {traffic.dispatch, traffic.combine};
    const CommunicatorId all = hand.communicator();
    for (std::uint32_t rank = 0; rank < 64; ++rank) {
      hand.collective(rank, hand.stream(rank, "collective"),
                      {.communicator = all,
                       .op = Op::kAllToAll,
                       .bytes = largest_buffer(traffic.dispatch),
                       .algorithm = choice,
                       .byte_matrix = back ? 1U : 0U});
    }
    const OpGraph graph = hand.build();
    return to_seconds(simulate(graph, cluster, {}).step_time);
  };
  const double token = 4096 * 14'336 / 50e9;  // all tokens of a rank over its card
  const double every = seconds(TokenCopies::kPerExpert, 0, Choice::kDirect, false);
  expect_close(every, 7 * token, "a copy an expert");
  const double node = seconds(TokenCopies::kPerNode, 0, Choice::kNodeForwarding, false);
  expect_close(node, 7.0 / 8 * 5.2947 * token, "a copy a node");
  expect_close(node / every, 0.662, "S25: 0.66");
  expect_close(seconds(TokenCopies::kPerNode, 0, Choice::kPxn, true), node, "and back");
  EXPECT_LT(seconds(TokenCopies::kPerNode, 4, Choice::kNodeForwarding, false), 0.5 * every);
}

// C8, S25 in a node: of 8 ranks with an expert each a token goes to 4; whatever a hot one gets more
// takes that much longer.
TEST(CollectiveTimesTest, AHotExpertIsThePortThatIsWaitedFor) {
  const Cluster cluster = one_node(8, 450_GBps);
  const auto seconds = [&](std::vector<double> load) {
    const ExpertTraffic traffic = route_tokens({.members = 8,
                                                .experts = 8,
                                                .top_k = 4,
                                                .tokens = 8192,
                                                .token_bytes = Bytes(16'384),
                                                .load = std::move(load)});
    GraphByHand hand(8);
    hand.graph().byte_matrices = {traffic.dispatch};
    const CommunicatorId all = hand.communicator();
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
      hand.collective(rank, hand.stream(rank, "collective"),
                      {.communicator = all,
                       .op = Op::kAllToAll,
                       .bytes = largest_buffer(traffic.dispatch),
                       .algorithm = Choice::kDirect,
                       .byte_matrix = 0U});
    }
    const OpGraph graph = hand.build();
    return to_seconds(simulate(graph, cluster, {}).step_time);
  };
  const double even = seconds({});
  expect_close(even, 7 * 0.5 * 8192 * 16'384 / 450e9, "half of the tokens to each of 7");
  // 1.3 times the mean load, over a port that also gets only from 7 others.
  expect_close(seconds({1.3, 1, 1, 1, 1, 1, 1, 0.7}) / even, 1.3, "hot");
}

// (n-1)/n S/(2 M W) with rotated orders, (n-1)/n S/(2 W) axis after axis: no gain (B1, B4). Half a
// ring of trips on each axis (B7).
TEST(CollectiveTimesTest, RotatedAxisOrdersAreWorthTheNumberOfAxes) {
  const Cluster cluster = torus({4, 4, 4}, true, 1us);
  const double whole = 54e9 / 90e9;
  CollectiveWork work{.communicator = CommunicatorId(0),
                      .op = Op::kAllGather,
                      .bytes = 54_GB,
                      .algorithm = Choice::kMultiAxis};
  for (const Granularity granularity : kBoth) {
    expect_close(simulated(cluster, work, granularity), 63.0 / 64 * whole / 6 + 6e-6, "rotated");
  }
  work.algorithm = Choice::kAxisAfterAxis;
  expect_close(simulated(cluster, work, Granularity::kStepped), 63.0 / 64 * whole / 2 + 6e-6,
               "axis after axis");
}

// S max(n_i) / (8 W), twice that without wraparound (B6). Odd rings (n^2 - 1) / (8 n). Stepped,
// each hop is a trip.
TEST(CollectiveTimesTest, ATorusAllToAllIsAnEighthOfTheLongestAxis) {
  const double whole = 7.2e9 / 90e9;
  const CollectiveWork work{.communicator = CommunicatorId(0),
                            .op = Op::kAllToAll,
                            .bytes = Bytes(7'200'000'000),
                            .algorithm = Choice::kTorusAllToAll};
  for (const Granularity granularity : kBoth) {
    const auto time = [&](std::vector<int> sizes) {
      return simulated(torus(std::move(sizes), true, 1us), work, granularity);
    };
    expect_close(time({8}), whole * 8 / 8 + 4e-6, "8");
    expect_close(time({5}), whole * 24 / 40 + 2e-6, "5");
    expect_close(time({4, 4}), whole * 4 / 8 + 4e-6, "4x4");
    expect_close(time({8, 8}), whole * 8 / 8 + 8e-6, "8x8");
    expect_close(time({4, 4, 4}), whole * 4 / 8 + 6e-6, "4x4x4");
  }
  const auto pipelined = [&](const Cluster& cluster) {
    return simulated(cluster, work, Granularity::kPipelined);
  };
  expect_close(pipelined(torus({4, 8}, true, 0us)), whole * 8 / 8, "4x8");
  expect_close(pipelined(torus({8}, false, 0us)), whole * 8 / 4, "line of 8");
}

// The twist shortens the mean way from 4 hops to 440 / 128 in 4x4x8, and with it the time: S d / (6
// W) over all six links of a chip, where the long axis of the plain torus takes S 8 / (8 W). `auto`
// takes it, and nothing else is faster.
TEST(CollectiveTimesTest, ATwistShortensAnAllToAll) {
  const Cluster cluster =
      cluster_of(TwistedTorusSpec{.shape = {4, 4, 8}, .link_bandwidth = 90_GBps});
  CollectiveWork work{
      .communicator = CommunicatorId(0), .op = Op::kAllToAll, .bytes = Bytes(7'200'000'000)};
  const double automatic = simulated(cluster, work, Granularity::kPipelined);
  expect_close(automatic, 7.2e9 / 90e9 * 440 / 128 / 6, "auto");
  for (const Choice other : algorithms_for(Op::kAllToAll, shape_of(cluster))) {
    work.algorithm = other;
    EXPECT_GE(simulated(cluster, work, Granularity::kPipelined), automatic * (1 - 1e-9))
        << name_of(other);
  }
}

// Each of the root's P ports takes in an even share of the N members: ceil((N-1)/P)/N S/W, plus a
// trip for each level of the trees. In 4x4x8, 127 members send through six ports and are at most 8
// hops away. Stepped, a member has to wait for data from far away: up to a third more.
TEST(CollectiveTimesTest, AGatherKeepsAllPortsOfTheRootAtWork) {
  const double whole = 1.28e9 / 90e9;
  struct Case {
    Cluster cluster;
    std::uint32_t root;
    double shards;
    double levels;
  };
  std::vector<Case> cases;
  cases.push_back({torus({4, 4, 8}, true, 1us), 37, 22, 8});
  cases.push_back({torus({4, 4}, true, 1us), 5, 4, 4});
  cases.push_back({torus({4, 4}, false, 1us), 0, 8, 6});
  for (const Case& of : cases) {
    for (const Op op : {Op::kGather, Op::kScatter}) {
      const CollectiveWork work{.communicator = CommunicatorId(0),
                                .op = op,
                                .bytes = Bytes(1'280'000'000),
                                .root = of.root};
      const auto members = static_cast<double>(of.cluster.places.chips.size());
      const double time = simulated(of.cluster, work, Granularity::kPipelined);
      expect_close(time, of.shards / members * whole + of.levels * 1e-6, "pipelined");
      const double stepped = simulated(of.cluster, work, Granularity::kStepped);
      EXPECT_GE(stepped, (time - of.levels * 1e-6) * (1 - 1e-9));
      EXPECT_LE(stepped, 4.0 / 3 * time);
    }
  }
}

// A member that only sends may end before the last one arrives. Ends and waits must still add up.
TEST(CollectiveTimesTest, MembersThatComeLateHoldUpWhoNeedsThem) {
  for (const Op op : kCollectiveOps) {
    for (const Choice choice : algorithms_for(op, shape_of(one_node(6, 100_GBps)))) {
      for (const Granularity granularity : kBoth) {
        GraphByHand hand(6);
        const CommunicatorId all = hand.communicator();
        for (std::uint32_t rank = 0; rank < 6; ++rank) {
          const OpRef computed = hand.compute_for(rank, 1ms * (1 + rank * 5 % 6));
          const OpRef done = hand.collective(rank, hand.stream(rank, "collective"),
                                             {.communicator = all,
                                              .op = op,
                                              .bytes = op == Op::kBarrier ? Bytes(0) : 60_MiB,
                                              .algorithm = choice,
                                              .root = 2},
                                             {after(computed)});
          hand.compute_for(rank, 1ms, {after(done)});
        }
        const OpGraph graph = hand.build();
        const SimulationResult result =
            simulate(graph, one_node(6, 100_GBps, 1us), {.granularity = granularity});
        // The last one comes after 6 ms and computes for 1 ms.
        EXPECT_GE(result.step_time, 7ms) << name_of(op) << " " << name_of(choice);
      }
    }
  }
}

}  // namespace
}  // namespace stepsim
