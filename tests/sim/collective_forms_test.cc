// Compares the closed form beside every collective (stated_form(),
// books/collective_forms/group_levels.h) with the simulation, over operations, algorithms,
// shapes and sizes. It must be within 0.1 % if it claims to be exact, and never above if it claims
// to be a lower bound. Also compares the bytes on every link with the definition of the algorithm.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "books/collective_forms/form_table.h"
#include "books/collective_forms/group_levels.h"
#include "books/collective_forms/phase_schedule.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/run/collectives/collective_task.h"
#include "tests/support/idle_collective.h"

namespace stepsim {
namespace {

using namespace literals;
using Op = CollectiveOp;
using Choice = AlgorithmChoice;

TEST(CollectiveFormsTest, AnAlgorithmHasOneFormAtMost) {
  for (const FormRow& row : form_table()) {
    EXPECT_EQ(std::ranges::count(form_table(), row.algorithm, &FormRow::algorithm), 1)
        << name_of(row.algorithm);
    EXPECT_EQ(form_of(row.algorithm), row.form);
  }
  EXPECT_EQ(form_of(Choice::kCustom), nullptr) << "its steps are counted";
}

struct Tally {
  int exact = 0;
  int bounds = 0;
};

// Every algorithm that can run, in both granularities.
void sweep(const Cluster& cluster, const std::string& name, Tally& tally,
           std::vector<std::uint32_t> chips = {}) {
  if (chips.empty()) chips = all_chips(cluster);
  const GroupShape shape = describe(cluster, chips);
  for (const Op op : kCollectiveOps) {
    for (const Choice choice : algorithms_for(op, shape)) {
      for (const std::int64_t bytes : {std::int64_t{60'480}, std::int64_t{604'800'000}}) {
        if (op == Op::kBarrier && bytes > 60'480) continue;
        const CollectiveWork work{.communicator = CommunicatorId(0),
                                  .op = op,
                                  .bytes = op == Op::kBarrier ? Bytes(0) : Bytes(bytes),
                                  .algorithm = choice,
                                  .root = static_cast<std::uint32_t>(chips.size() / 3)};
        const OpGraph graph = graph_of(cluster, work, chips);
        for (const Granularity granularity : {Granularity::kPipelined, Granularity::kStepped}) {
          const double seconds =
              to_seconds(simulate(graph, cluster, {.granularity = granularity}).step_time);
          const CollectiveFormula form =
              stated_form(cluster, chips, shape,
                          {.task = task_of(graph, graph.collective_works[0]),
                           .algorithm = choice,
                           .cost = {},
                           .overlapped = granularity == Granularity::kPipelined});
          const std::string what = name + ": " + std::string(name_of(op)) + " " +
                                   std::string(name_of(choice)) + " " +
                                   std::string(name_of(granularity)) + " of " +
                                   std::to_string(bytes) + " bytes: " + form.text;
          if (op == Op::kBarrier && seconds == 0 && form.seconds == 0) continue;  // no latency
          ASSERT_GT(form.seconds, 0) << what;
          if (form.exact) {
            ++tally.exact;
            EXPECT_NEAR(seconds / form.seconds, 1, 1e-3) << what;
          } else {
            ++tally.bounds;
            EXPECT_GT(seconds / form.seconds, 1 - 1e-3) << what;
            EXPECT_EQ(granularity, Granularity::kStepped) << what;
          }
        }
      }
    }
  }
}

TEST(CollectiveFormsTest, HoldOnASwitch) {
  Tally tally;
  for (const int n : {2, 3, 5, 8, 11}) {
    sweep(one_node(n, 450_GBps, 250ns), std::to_string(n), tally);
  }
  EXPECT_GT(tally.exact, 450);
  EXPECT_LT(tally.bounds, 40);  // trees in chunks; folds of other than powers of two
}

Cluster nodes_of(int nodes, int gpus, const PathChoice& routing = {}, int nodes_a_unit = 32) {
  DgxSuperPodSpec spec;
  spec.routing = routing;
  spec.nodes_per_scalable_unit = nodes_a_unit;
  spec.nodes = nodes;
  spec.gpus_per_node = gpus;
  spec.nvlink_bandwidth = 450_GBps;
  spec.nic_bandwidth = 50_GBps;
  spec.nvlink_latency = 250ns;
  spec.network_link_latency = 500ns;
  return cluster_of(spec);
}

TEST(CollectiveFormsTest, HoldOverNodes) {
  Tally tally;
  sweep(nodes_of(2, 8), "2 nodes", tally);
  sweep(nodes_of(3, 8), "3 nodes", tally);
  // Two cards of each of five nodes, in two units; three nodes that are not filled alike.
  sweep(nodes_of(5, 8), "2 of 5 nodes", tally, {0, 1, 8, 9, 16, 17, 24, 25, 32, 33});
  sweep(nodes_of(3, 8), "odd members", tally, {0, 1, 2, 8, 9, 10, 11, 16});
  EXPECT_GT(tally.exact, 2 * tally.bounds);  // stepped rounds that run into each other
}

// The hop with the longest trip is not the one with the slowest link, within nodes or between them.
// A round of a stepped ring takes the longest of the two hops, not the slowest link and the longest
// trip.
TEST(CollectiveFormsTest, HoldWhereTheSlowestLevelIsNotTheFarthest) {
  Tally tally;
  DgxSuperPodSpec spec;
  spec.nodes = 3;
  spec.gpus_per_node = 4;
  spec.nvlink_bandwidth = 25_GBps;
  spec.nvlink_latency = 10ns;
  spec.nic_bandwidth = 50_GBps;
  spec.network_link_latency = 10us;
  sweep(cluster_of(spec), "slow and near inside", tally);
  spec.nvlink_bandwidth = 50_GBps;
  spec.nvlink_latency = 10us;
  spec.nic_bandwidth = 10_GBps;
  spec.network_link_latency = 10ns;
  sweep(cluster_of(spec), "slow and near between", tally);
  EXPECT_GT(tally.exact, 2 * tally.bounds);
}

// Without links that are shared, each message follows the one before it: the counted form is exact
// although the rounds of members differ. A ring over two nodes: the slowest hop moves all the time.
TEST(CollectiveFormsTest, ARingOfUnlikeHopsKeepsItsSlowestHopMoving) {
  const Cluster cluster = nodes_of(2, 4);
  const CollectiveWork work{.communicator = CommunicatorId(0),
                            .op = Op::kAllGather,
                            .bytes = Bytes(8'000'000),
                            .algorithm = Choice::kRing};
  const OpGraph graph = graph_of(cluster, work, all_chips(cluster));
  const CollectiveFormula form =
      stated_form(cluster, all_chips(cluster), describe(cluster, all_chips(cluster)),
                  {.task = task_of(graph, graph.collective_works[0]),
                   .algorithm = Choice::kRing,
                   .cost = {},
                   .overlapped = false});
  // 1 MB at 50 GB/s to the next node: over NVLinks to the card of its rail, then over the leaf. Its
  // trips run while the message before it moves.
  EXPECT_TRUE(form.exact);
  EXPECT_NEAR(form.seconds, 7 * 20e-6 + 2 * 250e-9 + 2 * 500e-9, 1e-9);
}

// Pieces that share a link are of 944 and 946 bytes: the smaller one leaves the link sooner, and
// its receiver goes on before the others.
TEST(CollectiveFormsTest, UnequalPiecesThatShareALinkAreNotInStep) {
  RailFabricSpec spec;
  spec.nodes = 4;
  spec.rails = 8;
  spec.nic_bandwidth = 25_GBps;
  spec.link_latency = 250ns;
  spec.nodes_per_scalable_unit = 1;
  Tally tally;
  sweep(cluster_of(spec), "rails", tally);
  EXPECT_GT(tally.exact, 2 * tally.bounds);
}

// Trees in chunks on links that are shared, where no trip keeps two messages apart.
TEST(CollectiveFormsTest, HoldInABoxWithoutLatency) {
  PcieBoxSpec spec;
  spec.gpu_bandwidth = 450_GBps;
  spec.socket_bandwidth = 50_GBps;
  Tally tally;
  sweep(cluster_of(spec), "box", tally, {0, 1, 2, 3});
  sweep(cluster_of(spec), "every second GPU", tally, {0, 2, 4, 6});
  EXPECT_GT(tally.exact, tally.bounds);
}

TEST(CollectiveFormsTest, HoldOverSpinesThatAdaptiveSwitchesChoose) {
  Tally tally;
  const PathChoice adaptive{.rule = PathRule::kAdaptive};
  sweep(nodes_of(4, 4, adaptive, 2), "2 units of 2 nodes", tally);
  sweep(nodes_of(6, 2, adaptive, 2), "3 units of 2 nodes", tally);
  EXPECT_GT(tally.exact, 2 * tally.bounds);
}

TEST(CollectiveFormsTest, HoldOnTori) {
  Tally tally;
  const auto both = [&](const std::vector<int>& sizes, const std::vector<bool>& wraps) {
    std::string name;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      name += (i > 0 ? "x" : "") + std::to_string(sizes[i]) + (wraps[i] ? "w" : "");
    }
    sweep(torus_of(sizes, 90_GBps, 1us, wraps), name, tally);
  };
  both({4}, {true});
  both({5}, {true});
  both({5}, {false});
  both({2, 2}, {false, false});
  both({4, 4}, {true, true});
  both({3, 3}, {false, false});
  both({3, 5}, {true, true});
  both({4, 6}, {true, true});
  both({4, 2}, {true, false});
  both({2, 4}, {false, false});
  both({2, 3, 4}, {false, true, true});
  both({2, 3, 4}, {false, false, false});
  sweep(cluster_of(
            TwistedTorusSpec{.shape = {2, 2, 4}, .link_bandwidth = 90_GBps, .link_latency = 1us}),
        "2x2x4 twisted", tally);
  EXPECT_GT(tally.exact, tally.bounds);  // algorithms made for ports share links here
}

// Slices of 2x4 around a network, four chips a host; leaves whose spines are half as wide.
TEST(CollectiveFormsTest, HoldBetweenSlicesAndOverNarrowSpines) {
  Tally tally;
  LeafSpineSpec fabric;
  fabric.host_bandwidth = 25_GBps;
  fabric.link_latency = 5us;
  TorusSpec slice;
  slice.axes = {{.size = 4, .wraps = true}, {.size = 2, .wraps = false}};
  slice.link_bandwidth = 90_GBps;
  slice.link_latency = 1us;
  ComposedSpec slices{.domain = slice,
                      .tiers = {{.name = "slice",
                                 .count = 3,
                                 .fabric = fabric,
                                 .chips_per_host = 4,
                                 .host_bandwidth = 16_GBps,
                                 .host_latency = 1us}}};
  sweep(cluster_of(slices), "slices", tally);
  LeafSpineSpec narrow;
  narrow.leaves = 3;
  narrow.hosts_per_leaf = 4;
  narrow.spines = 1;
  narrow.host_bandwidth = 50_GBps;
  narrow.oversubscription = 2;
  narrow.link_latency = 1us;
  sweep(cluster_of(narrow), "narrow spine", tally);
  EXPECT_GT(tally.exact, tally.bounds);
}

// Two chunks through phases of 3 and 5: 3 + 5 + 5; phases that come back to a machine share it.
TEST(CollectiveFormsTest, APhaseScheduleIsAFlowShop) {
  const auto chunk = [](std::uint32_t machine, double work) {
    return LaneRound{.machine = machine, .trip = 0, .work = work};
  };
  const std::vector<LaneRound> first = {chunk(0, 3), chunk(1, 5)};
  std::vector<LaneRound> second = first;
  second[0].after = {.lane = 0, .round = 0};
  second[1].after = {.lane = 0, .round = 1};
  EXPECT_DOUBLE_EQ(phase_schedule({first, second}), 13);
  EXPECT_DOUBLE_EQ(phase_schedule({{chunk(0, 3)}, {chunk(0, 1)}}), 4);  // 2 shared, then 2 alone
  EXPECT_DOUBLE_EQ(phase_schedule({{{.machine = 0, .trip = 2, .work = 1}}}), 3);
}

// --- Bytes on links ------------------------------------------------------------------------------

std::vector<double> link_bytes(const Cluster& cluster, Op op, Choice choice, std::int64_t bytes,
                               Granularity granularity, std::uint32_t root = 0) {
  const OpGraph graph = graph_of(cluster, {.communicator = CommunicatorId(0),
                                           .op = op,
                                           .bytes = Bytes(bytes),
                                           .algorithm = choice,
                                           .root = root});
  std::vector<double> result;
  for (const LinkTotal& link : simulate(graph, cluster, {.granularity = granularity}).links) {
    result.push_back(link.bytes);
  }
  return result;
}

// On a switch every port carries, out and in, the bytes of the definition: (n-1)/n S; twice that
// for an all-reduce; S for sums in the switch; whole buffers if the algorithm sends them.
TEST(CollectiveFormsTest, EveryPortCarriesTheBytesOfTheDefinition) {
  constexpr std::int64_t kBytes = 8 * 7 * 6 * 5 * 1000;
  for (const int n : {5, 8}) {
    const Cluster cluster = one_node(n, 450_GBps);
    const double shard = static_cast<double>(kBytes) / n;
    struct Case {
      Op op;
      Choice choice;
      double port;
    };
    std::vector<Case> cases = {{Op::kAllReduce, Choice::kRing, 2 * (n - 1) * shard},
                               {Op::kAllReduce, Choice::kBidirectionalRing, 2 * (n - 1) * shard},
                               {Op::kAllGather, Choice::kRing, (n - 1) * shard},
                               {Op::kReduceScatter, Choice::kRing, (n - 1) * shard},
                               {Op::kAllGather, Choice::kBruck, (n - 1) * shard},
                               {Op::kAllToAll, Choice::kDirect, (n - 1) * shard},
                               {Op::kAllToAll, Choice::kPairwise, (n - 1) * shard},
                               {Op::kAllReduce, Choice::kNvls, n * shard},
                               {Op::kAllGather, Choice::kNvls, (n - 1) * shard},
                               {Op::kSendReceive, Choice::kDirect, n * shard},
                               {Op::kBarrier, Choice::kDissemination, 0}};
    if (n == 8) {
      cases.push_back({Op::kAllReduce, Choice::kHalvingDoubling, 2 * (n - 1) * shard});
      cases.push_back({Op::kAllReduce, Choice::kRecursiveDoubling, 3 * n * shard});
    }
    for (const Case& of : cases) {
      for (const Granularity granularity : {Granularity::kPipelined, Granularity::kStepped}) {
        const std::int64_t bytes = of.op == Op::kBarrier ? 0 : kBytes;
        const auto carried = link_bytes(cluster, of.op, of.choice, bytes, granularity);
        const bool nvls_gather = of.choice == Choice::kNvls && of.op == Op::kAllGather;
        for (std::size_t link = 0; link < carried.size(); ++link) {
          // Up goes the member's own shard, down those of all others.
          const bool up =
              cluster.fabric
                  .node(cluster.fabric.link(LinkId(static_cast<std::uint32_t>(link))).from)
                  .kind == NodeKind::kChip;
          const double expected = nvls_gather && up ? shard : of.port;
          EXPECT_NEAR(carried[link], expected, 16 + 1e-9 * expected)
              << name_of(of.op) << " " << name_of(of.choice) << " of " << n << " link " << link;
        }
      }
    }
  }
}

// On a torus of 4 x 6 with both axes wrapped, half of the data in each rotation: the links of an
// axis carry (n-1)/(2n) of what reaches it each way (B4). On a line of 5 the link between the
// members c and c + 1 carries c + 1 shards to the right in a gather, and n - 1 - c in a scatter.
TEST(CollectiveFormsTest, EveryLinkOfATorusCarriesTheBytesOfTheDefinition) {
  constexpr double kBytes = 4 * 6 * 2 * 2 * 2 * 5000;
  const auto check = [&](const Cluster& cluster, const std::vector<double>& carried,
                         auto expected) {
    for (std::uint32_t link = 0; link < carried.size(); ++link) {
      const Link& of = cluster.fabric.link(LinkId(link));
      const double bytes = expected(of.from.index(), of.to.index());
      EXPECT_NEAR(carried[link], bytes, 1e-6 * kBytes) << of.from.index() << ">" << of.to.index();
    }
  };
  const Cluster torus = torus_of({4, 6}, 90_GBps);
  const double x = kBytes / 2 * (3.0 / 8 + 1.0 / 6 * 3.0 / 8);
  const double y = kBytes / 2 * (5.0 / 12 + 1.0 / 4 * 5.0 / 12);
  const auto along = [&](double passes) {
    return
        [=](std::uint32_t from, std::uint32_t to) { return passes * (from / 4 == to / 4 ? x : y); };
  };
  const Cluster line = ring_of(5, 90_GBps, {}, false);
  const double shard = kBytes / 5;
  for (const Granularity granularity : {Granularity::kPipelined, Granularity::kStepped}) {
    const auto bytes = [&](const Cluster& cluster, Op op) {
      return link_bytes(cluster, op, Choice::kMultiAxis, static_cast<std::int64_t>(kBytes),
                        granularity);
    };
    check(torus, bytes(torus, Op::kAllGather), along(1));
    check(torus, bytes(torus, Op::kAllReduce), along(2));
    check(line, bytes(line, Op::kAllGather), [&](std::uint32_t from, std::uint32_t to) {
      return shard * (to > from ? from + 1 : 5 - from);
    });
    check(line, bytes(line, Op::kReduceScatter), [&](std::uint32_t from, std::uint32_t to) {
      return shard * (to > from ? 4 - from : from);
    });
    check(line, bytes(line, Op::kAllReduce), [&](std::uint32_t, std::uint32_t) { return kBytes; });
  }
}

// Level by level: NVLinks carry 7/8 S each pass, cards (M-1)/M of an eighth (C9); with all cards'
// trees an eighth each way, and the NVLinks the whole (C12, C18); PXN brings 7/8 to the rails and
// (M-1)/M over them (C11).
TEST(CollectiveFormsTest, CardsAndNvlinksCarryTheBytesOfTheDefinition) {
  const Cluster cluster = nodes_of(3, 8);
  constexpr double kBytes = 24 * 8 * 10'000;
  struct Case {
    Op op;
    Choice choice;
    double nvlink;
    double card;
  };
  for (const Case& of :
       {Case{Op::kAllReduce, Choice::kHierarchical, 2 * 7.0 / 8, 2 * 2.0 / 3 / 8},
        Case{Op::kAllGather, Choice::kOverlappedLevels, 7.0 / 8, 2.0 / 3 / 8},
        Case{Op::kAllReduce, Choice::kRotatedRings, 2 * 23.0 / 24 * 7 / 8, 2 * 23.0 / 24 / 8},
        Case{Op::kAllReduce, Choice::kSharp, 1, 1.0 / 8},
        Case{Op::kReduceScatter, Choice::kSharp, -1, -1},
        Case{Op::kAllToAll, Choice::kPxn, 7.0 / 8, 2.0 / 3},
        Case{Op::kAllToAll, Choice::kNodeForwarding, 7.0 / 8, 2.0 / 3},
        Case{Op::kAllToAll, Choice::kDirect, -1, 2.0 / 3}}) {
    if (of.nvlink < 0) continue;
    for (const Granularity granularity : {Granularity::kPipelined, Granularity::kStepped}) {
      const auto carried =
          link_bytes(cluster, of.op, of.choice, static_cast<std::int64_t>(kBytes), granularity);
      for (std::uint32_t link = 0; link < carried.size(); ++link) {
        const Link& at = cluster.fabric.link(LinkId(link));
        const bool chip = cluster.fabric.node(at.from).kind == NodeKind::kChip ||
                          cluster.fabric.node(at.to).kind == NodeKind::kChip;
        if (!chip) continue;  // spines
        const double share = at.bandwidth.value() > 100e9 ? of.nvlink : of.card;
        EXPECT_NEAR(carried[link] / kBytes, share, 2e-3)
            << name_of(of.op) << " " << name_of(of.choice) << " "
            << cluster.fabric.link_name(LinkId(link));
      }
    }
  }
}

}  // namespace
}  // namespace stepsim
