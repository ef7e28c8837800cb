// A job of eight ranks that are alike, and every single difference that must keep some of them
// apart: each would be a wrong result if the graph of sim/run/folding/fold.h forgot it. The folded
// run is always compared with that of all ranks.

#include "sim/run/folding/fold.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/program/graph_by_hand.h"
#include "sim/run/simulate.h"
#include "topology/kinds/explicit_graph.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace stepsim::literals;

constexpr std::uint32_t kRanks = 8;
constexpr std::uint32_t kOdd = 5;  // the rank or chip that is different

// Differences of a cluster: the cable of chip 5.
struct Cable {
  Bandwidth bandwidth = 50_GBps;
  Duration latency = 500ns;
};

Cluster star(const Cable& odd = {}, bool with_hosts = false, std::int64_t chips_of_host = 2) {
  ExplicitGraphSpec spec;
  spec.nodes.push_back({.name = "hub", .kind = NodeKind::kSwitch});
  for (std::uint32_t chip = 0; chip < kRanks; ++chip) {
    const Cable cable = chip == kOdd ? odd : Cable{};
    const std::string name = "chip" + std::to_string(chip);
    spec.nodes.push_back({.name = name});
    spec.links.push_back(
        {.from = name, .to = "hub", .bandwidth = cable.bandwidth, .latency = cable.latency});
  }
  Cluster cluster = cluster_of(spec);
  if (with_hosts) {
    cluster.hosts = add_hosts({.link_bandwidth = 20_GBps,
                               .chips = chips_of_host,
                               .memory_bandwidth = 30_GBps,
                               .memory_capacity = 1_GB},
                              cluster.places, cluster.fabric);
  }
  return cluster;
}

// Differences of a job: `pairs` sums, a message round the ring, a copy to the host.
struct Work {
  std::uint32_t of_group = 2;
  bool sends = false;
  bool copies = false;
  Bytes odd_bytes = 1_GB;   // of the last group's sum
  Duration odd_time = 1ms;  // of the kernels of the program of rank 5, if it differs
};

OpGraph job(const Work& work = {}) {
  GraphByHand hand(kRanks);
  Communicator groups{
      .name = "groups", .axis = GraphByHand::kCollectives, .groups = {}, .seat_of = {}};
  groups.seat_of.resize(kRanks);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    if (rank % work.of_group == 0) groups.groups.emplace_back();
    groups.seat_of[rank] = {rank / work.of_group, rank % work.of_group};
    groups.groups.back().emplace_back(rank);
  }
  const CommunicatorId all = hand.communicator();
  hand.graph().communicators.push_back(groups);
  const CommunicatorId in_groups(1);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    const bool is_odd = rank == kOdd && work.odd_time != 1ms;
    const OpRef made = hand.compute_for(rank, is_odd ? work.odd_time : Duration(1ms));
    const bool in_odd_group = rank / work.of_group == kOdd / work.of_group;
    const OpRef summed = hand.collective(
        rank, hand.stream(rank, "sums"),
        {.communicator = in_groups, .bytes = in_odd_group ? work.odd_bytes : 1_GB}, {after(made)});
    if (work.sends) {
      const auto message = [&](bool is_send, std::uint32_t peer) {
        return Message{
            .is_send = is_send, .communicator = all, .peer = peer % kRanks, .bytes = 100_MiB};
      };
      hand.messages(rank, hand.stream(rank, "ring"),
                    {message(true, rank + 1), message(false, rank + kRanks - 1)}, {after(made)});
    }
    if (work.copies) {
      hand.host(rank, hand.stream(rank, "host"),
                {.action = HostAction::kCopyOut, .bytes = 64_MiB, .stays = false}, {after(made)});
    }
    hand.compute_for(rank, 2ms, {after(summed)});
  }
  return hand.build();
}

// Ranks whose programs are alike run the same one.
OpGraph by_role(OpGraph graph, std::vector<std::uint32_t> odd_ranks = {}) {
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    const bool is_odd = std::ranges::count(odd_ranks, rank) > 0;
    graph.ranks[rank].program = ProgramId(is_odd ? rank : 0);
  }
  return graph;
}

Fold folded_as(const OpGraph& graph, const Cluster& cluster, const SimulationOptions& options) {
  CollectivePlans plans(graph, cluster, options.granularity, options.fidelity);
  return fold(graph, cluster, options, plans);
}

// Returns the number of classes, after a comparison of the folded run with that of all ranks.
std::size_t classes(const OpGraph& graph, const Cluster& cluster,
                    Fidelity fidelity = Fidelity::kFlow) {
  SimulationOptions options{.fidelity = fidelity, .fold = true};
  const SimulationResult folded = simulate(graph, cluster, options);
  options.fold = false;
  const SimulationResult whole = simulate(graph, cluster, options);
  EXPECT_EQ(folded.end, whole.end);
  EXPECT_EQ(folded.breakdowns, whole.breakdowns);
  EXPECT_EQ(folded.breakdown, whole.breakdown);
  EXPECT_EQ(folded.bytes_by_axis, whole.bytes_by_axis);
  EXPECT_EQ(folded.host_peaks, whole.host_peaks);
  for (std::size_t link = 0; link < whole.links.size(); ++link) {
    EXPECT_EQ(folded.links[link].bytes, whole.links[link].bytes) << link;
    EXPECT_EQ(folded.links[link].utilization, whole.links[link].utilization) << link;
  }
  return folded_as(graph, cluster, {.fidelity = fidelity}).statistics.classes;
}

TEST(FoldTest, RanksAlikeAreOneClass) {
  for (const Fidelity fidelity : {Fidelity::kFlow, Fidelity::kLatencyBandwidth}) {
    for (const std::uint32_t of_group : {1U, 2U, 4U, 8U}) {
      EXPECT_EQ(classes(by_role(job({.of_group = of_group})), star(), fidelity), 1U);
    }
  }
}

TEST(FoldTest, ASlowRankIsApartWithItsPeer) {
  OpGraph graph = by_role(job());
  graph.ranks[kOdd].slowdown = 1.5;
  EXPECT_EQ(classes(graph, star()), 3U);  // it, its peer and the others
}

TEST(FoldTest, ARankOfAnotherStageIsApart) {
  OpGraph graph = by_role(job());
  graph.ranks[kOdd].pp = 1;
  EXPECT_EQ(classes(graph, star()), 3U);
}

TEST(FoldTest, ARankOfAnotherProgramIsApart) {
  EXPECT_EQ(classes(by_role(job({.odd_time = 3ms}), {kOdd}), star()), 3U);
}

TEST(FoldTest, AGroupWithOtherBytesIsApart) {
  EXPECT_EQ(classes(by_role(job({.odd_bytes = 2_GB}), {kOdd - 1, kOdd}), star()), 3U);
}

TEST(FoldTest, ASlowLinkKeepsItsGroupApart) {
  // Both members of the group use all four of its links, so they are alike.
  EXPECT_EQ(classes(by_role(job()), star({.bandwidth = 10_GBps})), 2U);
}

TEST(FoldTest, ALongLinkKeepsItsGroupApart) {
  EXPECT_EQ(classes(by_role(job()), star({.latency = 100us})), 2U);
}

// Each rank names its neighbours by their places, which are all different.
TEST(FoldTest, RanksThatNameOthersByPlaceAreApart) {
  for (const bool is_odd : {false, true}) {
    const Cluster cluster = star({.bandwidth = is_odd ? 10_GBps : 50_GBps});
    EXPECT_EQ(classes(job({.sends = true}), cluster), kRanks);
  }
}

TEST(FoldTest, RanksOfAHostAreAlike) {
  EXPECT_EQ(classes(by_role(job({.copies = true})), star({}, true)), 1U);
}

// Three hosts of three, three and two chips: the third is less busy.
TEST(FoldTest, AnEmptierHostIsApart) {
  EXPECT_GT(classes(by_role(job({.of_group = 1, .copies = true})), star({}, true, 3)), 1U);
}

TEST(FoldTest, WhatCantBeFoldedIsSaid) {
  OpGraph graph = by_role(job());
  const Cluster cluster = star();
  const auto why_not = [&](const SimulationOptions& options) {
    const Fold folded = folded_as(graph, cluster, options);
    EXPECT_FALSE(folded.quotient);
    EXPECT_EQ(folded.statistics.classes, kRanks);
    return folded.statistics.why_not;
  };
  EXPECT_EQ(why_not({.fidelity = Fidelity::kPacket, .granularity = Granularity::kStepped}),
            "packets are ordered by what sends them");
  EXPECT_EQ(why_not({.granularity = Granularity::kStepped}), "collectives are stepped");
  graph.jitter.deviation = 0.1;
  EXPECT_EQ(why_not({}), "jitter makes every rank different");
}

// What a folded job can't finish is reported of the whole one.
TEST(FoldTest, ADeadlockNamesRanksOfTheWholeJob) {
  OpGraph graph = by_role(job({.odd_bytes = 2_GB}), {kOdd});  // rank 4 sums 1 GB, rank 5 sums 2
  EXPECT_THROW(simulate(graph, star(), {.fold = true}), MismatchError);
}

}  // namespace
}  // namespace stepsim
