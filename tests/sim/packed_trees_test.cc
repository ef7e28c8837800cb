#include "sim/collectives/algorithms/trees/packed_trees.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "sim/collectives/choose_algorithm.h"
#include "sim/collectives/proof.h"
#include "tests/support/idle_collective.h"
#include "tests/support/linked_chips.h"

namespace stepsim {
namespace {

using Op = CollectiveOp;
using Choice = AlgorithmChoice;

constexpr Op kRingOps[] = {Op::kAllGather, Op::kReduceScatter, Op::kAllReduce};
constexpr Bytes kLarge(256 << 20);

// The least time of an all-gather of kLarge: (n - 1) / n of it into the chip with the least ports,
// and out of every set of chips the parts of its chips over the links that leave it. All sets of up
// to 16 chips are tried, in groups without switches.
double bound(const Cluster& cluster) {
  const auto n = static_cast<std::uint32_t>(cluster.places.chips.size());
  const double part = static_cast<double>(kLarge.value()) / n;
  double least = 0;
  std::vector<double> ports(n, 0.0);
  bool has_switches = false;
  for (const Link& link : cluster.fabric.links()) {
    if (link.to.index() < n) ports[link.to.index()] += link.bandwidth.value();
    has_switches = has_switches || link.to.index() >= n;
  }
  for (const double port : ports) least = std::max(least, (n - 1) * part / port);
  if (n > 16 || has_switches) return least;
  for (std::uint32_t set = 1; set + 1 < 1U << n; ++set) {
    double leaves = 0;
    for (const Link& link : cluster.fabric.links()) {
      if ((set >> link.from.index() & 1U) != 0 && (set >> link.to.index() & 1U) == 0) {
        leaves += link.bandwidth.value();
      }
    }
    least = std::max(least, std::popcount(set) * part / leaves);
  }
  return least;
}

struct Linked {
  std::string name;
  ExplicitGraphSpec spec;
};

std::vector<Linked> linked_graphs() {
  std::vector<Linked> all = {{"DGX-1", dgx1()},
                             {"Petersen", petersen()},
                             {"circulant 16", circulant(16, {1, 3, 5})},
                             {"circulant 13", circulant(13, {1, 5})},
                             {"Moebius-Kantor 16", circulant(16, {1, 8})},
                             {"two groups of 8", two_groups(4)},
                             {"two groups of 8, one bridge", two_groups(1)},
                             {"HammingMesh 2x2 of 2x2", hamming_mesh(2, 2, 2, 2)},
                             {"HammingMesh 4x2 of 2x2", hamming_mesh(2, 2, 4, 2)},
                             {"HammingMesh 4x4 of 2x2", hamming_mesh(2, 2, 4, 4)},
                             {"HammingMesh 2x2 of 4x4", hamming_mesh(4, 4, 2, 2)}};
  for (const std::uint32_t dimensions : {3U, 4U, 5U, 6U}) {
    all.push_back({"hypercube " + std::to_string(dimensions), hypercube(dimensions)});
  }
  for (const std::uint32_t chips : {4U, 5U, 8U, 16U}) {
    all.push_back({"fully linked " + std::to_string(chips), fully_linked(chips)});
  }
  for (const double wide : {2.0, 2.5, 1.25}) {
    all.push_back({"torus of unequal axes", linked_grid({4, 8}, {true, true}, {1, wide})});
  }
  return all;
}

TEST(PackedTreesTest, LinkedChipsComeNearTheBoundOfTheCuts) {
  for (const Linked& graph : linked_graphs()) {
    for (const unsigned seed : {0U, 7U}) {
      const Cluster cluster =
          cluster_of(seed == 0 ? graph.spec : listed_otherwise(graph.spec, seed));
      const double least = bound(cluster);
      const bool is_torus = shape_of(cluster).ways.empty();
      for (const Op op : kRingOps) {
        const double passes = op == Op::kAllReduce ? 2 : 1;
        const CollectiveWork work{.communicator = CommunicatorId(0), .op = op, .bytes = kLarge};
        for (const Granularity granularity : {Granularity::kPipelined, Granularity::kStepped}) {
          // Stepped, the axes of a torus of unequal axes take turns (docs/collectives.md).
          if (is_torus && granularity == Granularity::kStepped) continue;
          const double time = simulated(cluster, work, granularity);
          EXPECT_LE(time, 1.25 * passes * least)
              << graph.name << " " << name_of(op) << " " << name_of(granularity);
          EXPECT_GE(time, passes * least) << graph.name << " " << name_of(op);
        }
      }
    }
  }
}

TEST(PackedTreesTest, EveryMemberEndsWithWhatTheOperationPromises) {
  for (const Linked& graph : linked_graphs()) {
    const GroupShape shape = shape_of(cluster_of(graph.spec));
    if (shape.ways.empty()) continue;  // a torus
    for (const Op op : kRingOps) {
      for (const std::int64_t elements : {7, 40'321}) {
        const CollectiveTask task{.op = op, .bytes = Bytes(2 * elements), .element = Bytes(2)};
        const auto algorithm = choose_algorithm(task, Choice::kPackedTrees, shape);
        EXPECT_EQ(disproof(task, *algorithm).value_or(""), "") << graph.name << name_of(op);
      }
    }
  }
}

TEST(PackedTreesTest, OneWayLinksReachBothPasses) {
  LinkedChips graph(5);
  graph.line(0, 5, 1, true);
  graph.link(0, 2);
  ExplicitGraphSpec spec = graph.spec();
  for (ExplicitLink& link : spec.links) link.one_way = true;
  const Cluster cluster = cluster_of(spec);
  const GroupShape shape = shape_of(cluster);
  ASSERT_FALSE(shape.ways.empty());
  for (const Op op : kRingOps) {
    const CollectiveTask task{.op = op, .bytes = Bytes(40'000), .element = Bytes(2)};
    const auto algorithm = choose_algorithm(task, Choice::kPackedTrees, shape);
    EXPECT_EQ(disproof(task, *algorithm).value_or(""), "") << name_of(op);
  }
}

// Rounds of a chunk each: (n - 1) / n S/W of all links, and a trip a round. Stepped, a round takes
// its chunk and its trip, so the two forms differ by what the last rounds leave idle, and, where
// links are unequal, by trips that not all members take.
TEST(PackedTreesTest, SteppedAndPipelinedAgree) {
  for (const Linked& graph : linked_graphs()) {
    const Cluster cluster = cluster_of(graph.spec);
    const GroupShape shape = shape_of(cluster);
    if (shape.ways.empty() || shape.members() > 32) continue;
    for (const Op op : kRingOps) {
      for (const Bytes bytes : {Bytes(64 << 10), kLarge}) {
        const CollectiveWork work{.communicator = CommunicatorId(0),
                                  .op = op,
                                  .bytes = bytes,
                                  .algorithm = Choice::kPackedTrees};
        const double pipelined = simulated(cluster, work, Granularity::kPipelined);
        const double stepped = simulated(cluster, work, Granularity::kStepped);
        EXPECT_NEAR(stepped / pipelined, 1, bytes == kLarge ? 0.1 : 0.5)
            << graph.name << " " << name_of(op) << " " << bytes.value();
      }
    }
  }
}

TEST(PackedTreesTest, AutoTakesThemWhereChipsAreLinkedAndNotOnSwitches) {
  const CollectiveWork work{
      .communicator = CommunicatorId(0), .op = Op::kAllReduce, .bytes = kLarge};
  EXPECT_EQ(way_of(cluster_of(dgx1()), work).algorithm, Choice::kPackedTrees);
  EXPECT_EQ(way_of(cluster_of(petersen()), work).algorithm, Choice::kPackedTrees);
  LinkedChips hub(8);
  hub.hub("hub", {0, 1, 2, 3, 4, 5, 6, 7});
  const Cluster switched = cluster_of(hub.spec());
  EXPECT_TRUE(shape_of(switched).ways.empty());
  EXPECT_EQ(way_of(switched, work).algorithm, Choice::kRing);
  EXPECT_NE(refusal(Op::kAllReduce, Choice::kPackedTrees, shape_of(switched)), "");
}

// The number of pieces changes with the size, from few rounds to full links.
TEST(PackedTreesTest, LargerIsNeverFaster) {
  for (const ExplicitGraphSpec& spec : {dgx1(), two_groups(4), hamming_mesh(2, 2, 2, 2)}) {
    const Cluster cluster = cluster_of(spec);
    for (const Op op : kRingOps) {
      double before = 0;
      for (std::int64_t bytes = 4 << 10; bytes <= 64 << 20; bytes += bytes / 2) {
        const double time = simulated(cluster,
                                      {.communicator = CommunicatorId(0),
                                       .op = op,
                                       .bytes = Bytes(bytes / 2 * 2),
                                       .algorithm = Choice::kPackedTrees},
                                      Granularity::kPipelined);
        EXPECT_GE(time, 0.99 * before) << name_of(op) << " of " << bytes;
        before = time;
      }
    }
  }
}

// On both sides of the limits of member_ways.h.
TEST(PackedTreesTest, TreesArePackedUpToTheLimits) {
  EXPECT_FALSE(shape_of(cluster_of(circulant(256, {1, 7}))).ways.empty());
  EXPECT_TRUE(shape_of(cluster_of(circulant(257, {1, 7}))).ways.empty());
  for (const double wide : {8.0, 8.1}) {
    LinkedChips graph(4);
    graph.line(0, 4, 1, true);
    graph.link(0, 2, wide);
    EXPECT_EQ(shape_of(cluster_of(graph.spec())).ways.empty(), wide > 8);
  }
}

}  // namespace
}  // namespace stepsim
