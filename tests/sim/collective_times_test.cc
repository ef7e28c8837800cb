// On an idle network each algorithm takes its closed form (analysis/collective_formulas.h, FORMULAS
// groups B and C) within 0.1 %, stepped and pipelined, or to what is written beside the case.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "analysis/collective_formulas.h"
#include "analysis/experiments/graph_by_hand.h"
#include "analysis/experiments/small_clusters.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/group_shape.h"

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

double simulated(const Cluster& cluster, const CollectiveWork& work, Granularity granularity,
                 Fidelity fidelity = Fidelity::kFlow) {
  const auto ranks = static_cast<std::uint32_t>(cluster.places.chips.size());
  GraphByHand hand(ranks);
  const CommunicatorId all = hand.communicator();
  CollectiveWork placed = work;
  placed.communicator = all;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    hand.collective(rank, hand.stream(rank, "collective"), placed);
  }
  const OpGraph graph = hand.build();
  return to_seconds(
      simulate(graph, cluster, {.fidelity = fidelity, .granularity = granularity}).step_time);
}

GroupShape shape_of(const Cluster& cluster) {
  std::vector<std::uint32_t> chips;
  for (std::uint32_t chip = 0; chip < cluster.places.chips.size(); ++chip) chips.push_back(chip);
  return describe(cluster, chips);
}

// 0 where there is no formula.
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
                                          .overlapped = granularity == Granularity::kPipelined});
  return result ? result->seconds : 0;
}

void expect_close(double simulated, double expected, const std::string& what) {
  EXPECT_NEAR(simulated / expected, 1.0, 1e-3) << what;
}

std::string text(const CollectiveWork& work, std::size_t members, Granularity granularity) {
  return std::string(name_of(work.op)) + " " + std::string(name_of(work.algorithm)) + " of " +
         std::to_string(members) + " " + std::string(name_of(granularity));
}

// On one switch ports are all that counts: every algorithm that has a closed form takes it.
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
  EXPECT_GT(cases, 300);
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
           // 16 chunks a member at most: 128; 6 + 128 rounds.
           Case{Op::kBroadcast, Choice::kChain, 134 * (whole / 128 + 1e-6)},
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

// An inner node of one tree sends a chunk of it three times and one of the other tree once: 2 S/W.
// Stepped, a round in which a port serves both trees takes two chunks, and its neighbours wait: at
// most 6 chunks of S/(2 C) a period instead of 4, 3 S/W; filling and late rounds add a fifth.
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
    EXPECT_LT(seconds, 2 * 1.008e9 / 450e9 * 1.8) << n;
  }
}

// (n-1)/n S/(2 M W) with rotated orders, (n-1)/n S/(2 W) axis after axis: no gain (B1, B4).
TEST(CollectiveTimesTest, RotatedAxisOrdersAreWorthTheNumberOfAxes) {
  const Cluster cluster = torus({4, 4, 4}, true, 1us);
  const double whole = 54e9 / 90e9;
  CollectiveWork work{.communicator = CommunicatorId(0),
                      .op = Op::kAllGather,
                      .bytes = 54_GB,
                      .algorithm = Choice::kMultiAxis};
  for (const Granularity granularity : kBoth) {
    expect_close(simulated(cluster, work, granularity), 63.0 / 64 * whole / 6 + 9e-6, "rotated");
  }
  work.algorithm = Choice::kAxisAfterAxis;
  expect_close(simulated(cluster, work, Granularity::kStepped), 63.0 / 64 * whole / 2 + 9e-6,
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

// A member that only sends may end before the last one has come; ends and waits still add up.
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
