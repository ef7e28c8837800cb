#include "sim/run/simulate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/program/graph_by_hand.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

Duration exposed(const Breakdown& breakdown, Axis axis) {
  return breakdown.exposed_communication[static_cast<std::size_t>(axis)];
}

// --- Compute -------------------------------------------------------------------------------------

TEST(SimulateTest, AComputeOnlyRunTakesFlopsOverThroughput) {
  GraphByHand hand(2);
  for (int i = 0; i < 3; ++i) hand.compute(0, Flops(7e12));
  hand.compute(1, Flops(5e12));
  const OpGraph graph = hand.build();
  const SimulationResult result = simulate(graph, one_node(2, 1_GBps), {});
  EXPECT_EQ(result.step_time, 21ms) << "3 x 7 TFLOP at 1 PFLOP/s";
  EXPECT_EQ(result.breakdowns[1].compute, 5ms);
  EXPECT_EQ(result.breakdowns[1].idle, 16ms) << "nothing left to run";
  EXPECT_EQ(result.flops, Flops(26e12));
}

TEST(SimulateTest, TheMeanOfLongStepsNeedsNoSumOverAllRanks) {
  const Duration long_step(std::int64_t{1} << 62);
  GraphByHand hand(8);
  for (std::uint32_t rank = 0; rank < 8; ++rank) hand.compute_for(rank, long_step);
  const OpGraph graph = hand.build();
  const SimulationResult result = simulate(graph, one_node(8, 1_GBps), {});
  EXPECT_EQ(result.step_time, long_step);
  EXPECT_EQ(result.breakdown.compute, long_step);
}

TEST(SimulateTest, AStepAfterTheEndOfTimeIsRefused) {
  GraphByHand hand(1);
  for (int i = 0; i < 3; ++i) hand.compute_for(0, Duration(std::int64_t{1} << 62));
  const OpGraph graph = hand.build();
  EXPECT_THROW(simulate(graph, one_node(1, 1_GBps), {}), std::range_error);
}

TEST(SimulateTest, ACollectiveOfMoreThan16TebibytesIsRefused) {
  GraphByHand hand(2);
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    hand.collective(rank, hand.stream(rank, "ring"),
                    {.communicator = all, .bytes = kMostCollectiveBytes + 1_B});
  }
  const OpGraph graph = hand.build();
  EXPECT_THROW(simulate(graph, one_node(2, 1_GBps), {}), std::range_error);
}

TEST(SimulateTest, AMemoryBoundKernelTakesBytesOverBandwidth) {
  GraphByHand hand(1);
  hand.compute(0, Flops(1e12), {}, 4_GB);  // 1 ms of arithmetic, 4 ms of memory at 1 TB/s
  const OpGraph graph = hand.build();
  EXPECT_EQ(simulate(graph, one_node(1, 1_GBps), {}).step_time, 4ms);
}

TEST(SimulateTest, AStragglerTakesItsSlowdownLonger) {
  GraphByHand hand(1);
  hand.compute_for(0, 10ms);
  hand.graph().ranks[0].slowdown = 1.5;
  const OpGraph graph = hand.build();
  EXPECT_EQ(simulate(graph, one_node(1, 1_GBps), {}).step_time, 15ms);
}

// --- Sends and receives --------------------------------------------------------------------------

struct Pair {
  GraphByHand hand{2, {0, 1}};
  CommunicatorId communicator = hand.communicator({}, GraphByHand::kMessages);
  StreamId send = hand.stream(0, "send");
  StreamId receive = hand.stream(1, "receive");

  Message half(bool is_send, bool eager, std::int32_t microbatch = 0) const {
    return {.is_send = is_send,
            .eager = eager,
            .communicator = communicator,
            .peer = is_send ? 1U : 0U,
            .microbatch = microbatch,
            .bytes = 2_GB};
  }
};

TEST(SimulateTest, ARendezvousStartsWhenBothSidesHavePosted) {
  Pair pair;
  const OpRef sender = pair.hand.compute_for(0, 100ms);
  pair.hand.messages(0, pair.send, {pair.half(true, false)}, {after(sender)});
  const OpRef busy = pair.hand.compute_for(1, 300ms);
  const OpRef received =
      pair.hand.messages(1, pair.receive, {pair.half(false, false)}, {after(busy)});
  pair.hand.compute_for(1, 1ms, {after(received)});
  const OpGraph graph = pair.hand.build();
  // Posted at 300 ms, 2 GB at 10 GB/s behind two links of 1 us.
  const SimulationResult result = simulate(graph, one_node(2, 10_GBps, 1us), {});
  EXPECT_EQ(result.step_time, 300ms + 2us + 200ms + 1ms);
  EXPECT_EQ(exposed(result.breakdowns[1], GraphByHand::kMessages), 200ms + 2us);
  EXPECT_EQ(result.bytes_by_axis[static_cast<std::size_t>(GraphByHand::kMessages)], 2_GB);
}

TEST(SimulateTest, AnEagerSendDoesNotWaitForItsReceive) {
  Pair pair;
  const OpRef sender = pair.hand.compute_for(0, 100ms);
  pair.hand.messages(0, pair.send, {pair.half(true, true)}, {after(sender)});
  const OpRef busy = pair.hand.compute_for(1, 400ms);
  const OpRef received =
      pair.hand.messages(1, pair.receive, {pair.half(false, true)}, {after(busy)});
  pair.hand.compute_for(1, 1ms, {after(received)});
  const OpGraph graph = pair.hand.build();
  EXPECT_EQ(simulate(graph, one_node(2, 10_GBps), {}).step_time, 401ms) << "there since 300 ms";
}

TEST(SimulateTest, OnlyTheSenderSaysWhetherAMessageIsEager) {
  Pair pair;
  pair.hand.messages(0, pair.send, {pair.half(true, true)});
  const OpRef busy = pair.hand.compute_for(1, 50ms);
  pair.hand.messages(1, pair.receive, {pair.half(false, false)}, {after(busy)});
  const OpGraph graph = pair.hand.build();
  const SimulationResult result = simulate(graph, one_node(2, 10_GBps), {});
  EXPECT_EQ(result.step_time, 200ms);
  EXPECT_EQ(result.bytes_by_axis[static_cast<std::size_t>(GraphByHand::kMessages)], 2_GB) << "once";
}

TEST(SimulateTest, ASendAndAReceiveOfDifferentSizesAreBothNamed) {
  Pair pair;
  Message receive = pair.half(false, false);
  receive.bytes = 1_GB;
  pair.hand.messages(0, pair.send, {pair.half(true, false)});
  pair.hand.messages(1, pair.receive, {receive});
  const OpGraph graph = pair.hand.build();
  try {
    simulate(graph, one_node(2, 1_GBps), {});
    FAIL() << "expected MismatchError";
  } catch (const MismatchError& error) {
    EXPECT_STREQ(error.what(),
                 "rank 0 sends 2000000000 bytes to rank 1, which receives 1000000000 (activation, "
                 "micro-batch 0, boundary 0)");
  }
}

TEST(SimulateTest, MessagesMatchByMicrobatchNotByOrder) {
  Pair pair;
  pair.hand.messages(0, pair.send, {pair.half(true, true, 1), pair.half(true, true, 0)});
  const OpRef first = pair.hand.messages(1, pair.receive, {pair.half(false, true, 0)});
  pair.hand.messages(1, pair.receive, {pair.half(false, true, 1)}, {after(first)});
  const OpGraph graph = pair.hand.build();
  // Both share the link: 4 GB at 10 GB/s.
  EXPECT_EQ(simulate(graph, one_node(2, 10_GBps), {}).step_time, 400ms);
}

TEST(SimulateTest, WaitingForAnotherStageIsABubbleUntilTheDataMove) {
  Pair pair;
  const OpRef sender = pair.hand.compute_for(0, 100ms);
  pair.hand.messages(0, pair.send, {pair.half(true, false)}, {after(sender)});
  const OpRef received = pair.hand.messages(1, pair.receive, {pair.half(false, false)});
  pair.hand.compute_for(1, 1ms, {after(received)});
  const OpGraph graph = pair.hand.build();
  const SimulationResult result = simulate(graph, one_node(2, 10_GBps), {});
  EXPECT_EQ(result.breakdowns[1].bubble, 100ms);
  EXPECT_EQ(exposed(result.breakdowns[1], GraphByHand::kMessages), 200ms);
  EXPECT_EQ(result.breakdowns[0].bubble, 1ms) << "nothing left after its send";
  EXPECT_EQ(exposed(result.breakdowns[0], GraphByHand::kMessages), 200ms);
  // The path to the end: sender's compute, the message, receiver's compute.
  ASSERT_EQ(result.critical_path.size(), 2U);
  EXPECT_EQ(result.critical_path[0].label, "messages");
  EXPECT_EQ(result.critical_path[0].duration, 200ms);
  EXPECT_EQ(result.critical_path[1].duration, 101ms);
}

// --- Collectives ---------------------------------------------------------------------------------

OpGraph one_collective(std::uint32_t ranks, CollectiveOp op, Bytes bytes, AlgorithmChoice choice) {
  GraphByHand hand(ranks);
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    hand.collective(rank, hand.stream(rank, "collective"),
                    {.communicator = all, .op = op, .bytes = bytes, .algorithm = choice});
  }
  return hand.build();
}

double seconds_of(const Cluster& cluster, CollectiveOp op, Bytes bytes, AlgorithmChoice choice,
                  SimulationOptions options = {}) {
  const auto ranks = static_cast<std::uint32_t>(cluster.places.chips.size());
  const OpGraph graph = one_collective(ranks, op, bytes, choice);
  return to_seconds(simulate(graph, cluster, options).step_time);
}

void expect_within_a_thousandth(double simulated, double expected, const std::string& what) {
  EXPECT_NEAR(simulated / expected, 1.0, 1e-3) << what;
}

// 2 (n-1)/n S/B + 2 (n-1) hop latency (FORMULAS C1).
TEST(SimulateTest, ARingAllReduceTakesItsClosedForm) {
  for (const std::uint32_t n : {2U, 3U, 8U, 16U}) {
    for (const Granularity granularity : {Granularity::kPipelined, Granularity::kStepped}) {
      for (const Fidelity fidelity : {Fidelity::kFlow, Fidelity::kLatencyBandwidth}) {
        const Cluster cluster = ring_of(static_cast<int>(n), 50_GBps, 1us, n > 2);
        const double expected = 2.0 * (n - 1) / n * 4.8e9 / 50e9 + 2.0 * (n - 1) * 1e-6;
        expect_within_a_thousandth(
            seconds_of(cluster, CollectiveOp::kAllReduce, Bytes(4'800'000'000),
                       AlgorithmChoice::kRing, {.fidelity = fidelity, .granularity = granularity}),
            expected, std::to_string(n) + " " + std::string(name_of(granularity)));
      }
    }
  }
}

// V (n-1)/(n W_bidi) on a wrapped axis, (n-1)/n V/W_uni on a line (FORMULAS B1, B3).
TEST(SimulateTest, WraparoundIsWorthAFactorOfTwo) {
  for (const Granularity granularity : {Granularity::kPipelined, Granularity::kStepped}) {
    const SimulationOptions options{.granularity = granularity};
    const double line = seconds_of(ring_of(8, 90_GBps, {}, false), CollectiveOp::kAllGather, 9_GB,
                                   AlgorithmChoice::kAuto, options);
    const double ring = seconds_of(ring_of(8, 90_GBps, {}, true), CollectiveOp::kAllGather, 9_GB,
                                   AlgorithmChoice::kAuto, options);
    expect_within_a_thousandth(line, 7.0 / 8 * 0.1, "line");
    expect_within_a_thousandth(ring, 7.0 / 8 * 0.05, "ring");
  }
}

// V (N-1)/(N M W_bidi) over M wrapped axes with rotated orders (FORMULAS B4, B5).
TEST(SimulateTest, AMultiAxisCollectiveUsesEveryLinkOfTheTorus) {
  TorusSpec spec;
  spec.axes = {{4, true}, {4, true}, {4, true}};
  spec.link_bandwidth = 90_GBps;
  for (const Granularity granularity : {Granularity::kPipelined, Granularity::kStepped}) {
    const SimulationOptions options{.granularity = granularity};
    const Bytes bytes(54'000'000'000);
    const double gather = 63.0 / 64 * 54e9 / (3 * 180e9);
    expect_within_a_thousandth(seconds_of(cluster_of(spec), CollectiveOp::kAllGather, bytes,
                                          AlgorithmChoice::kAuto, options),
                               gather, "all-gather");
    expect_within_a_thousandth(seconds_of(cluster_of(spec), CollectiveOp::kAllReduce, bytes,
                                          AlgorithmChoice::kAuto, options),
                               2 * gather, "all-reduce");
  }
}

// Two nodes of 8: reduce-scatter in the node (7/8 S at 450 GB/s), ring of 2 on each rail with S/8
// (2 x 1/2 S/8 at 50 GB/s), all-gather in the node. Stepped: the sum of the levels. Pipelined: the
// slowest level, here the rails.
TEST(SimulateTest, AHierarchicalAllReduceIsTheSumOrTheMaximumOfItsLevels) {
  DgxSuperPodSpec spec;
  spec.nodes = 2;
  const Bytes bytes(7'200'000'000);
  const double node = 2 * 7.0 / 8 * 7.2e9 / 450e9;
  const double rails = 2 * 1.0 / 2 * (7.2e9 / 8) / 50e9;
  expect_within_a_thousandth(
      seconds_of(cluster_of(spec), CollectiveOp::kAllReduce, bytes, AlgorithmChoice::kAuto,
                 {.granularity = Granularity::kStepped}),
      node + rails, "stepped");
  expect_within_a_thousandth(
      seconds_of(cluster_of(spec), CollectiveOp::kAllReduce, bytes, AlgorithmChoice::kAuto),
      std::max(node, rails), "pipelined");
}

TEST(SimulateTest, AGroupOfOneCostsNothing) {
  EXPECT_EQ(seconds_of(one_node(1, 1_GBps), CollectiveOp::kAllReduce, 1_GB, AlgorithmChoice::kAuto),
            0.0);
}

TEST(SimulateTest, WaitingForALatePeerOfTheSameStageIsIdle) {
  for (const Granularity granularity : {Granularity::kPipelined, Granularity::kStepped}) {
    GraphByHand hand(2);
    const CommunicatorId all = hand.communicator();
    const CollectiveWork work{.communicator = all, .op = CollectiveOp::kAllGather, .bytes = 20_GB};
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const OpRef computed = hand.compute_for(rank, rank == 0 ? 10ms : 60ms);
      const OpRef gathered =
          hand.collective(rank, hand.stream(rank, "dp"), work, {after(computed)});
      hand.compute_for(rank, 1ms, {after(gathered)});
    }
    const OpGraph graph = hand.build();
    const SimulationResult result =
        simulate(graph, one_node(2, 100_GBps), {.granularity = granularity});
    // Half of 20 GB at 100 GB/s after the last one posts at 60 ms.
    EXPECT_EQ(result.step_time, 161ms);
    EXPECT_EQ(result.breakdowns[0].idle, 50ms);
    EXPECT_EQ(exposed(result.breakdowns[0], GraphByHand::kCollectives), 100ms);
    EXPECT_EQ(result.breakdowns[1].idle, 0ms);
    ASSERT_EQ(result.critical_path.size(), 2U);
    EXPECT_EQ(result.critical_path[0].duration, 100ms);
    EXPECT_EQ(result.critical_path[1].duration, 61ms) << "the compute of the late rank";
  }
}

// Compute 100 ms alone. From 0 to 50 ms a collective holds half of the arithmetic: 25 ms of work
// are done by then; the other 75 ms take 75 ms.
TEST(SimulateTest, CommunicationSlowsTheComputeBesideIt) {
  GraphByHand hand(2);
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    hand.compute_for(rank, 100ms);
    hand.collective(rank, hand.stream(rank, "dp"),
                    {.communicator = all, .op = CollectiveOp::kAllGather, .bytes = 10_GB});
  }
  const OpGraph graph = hand.build();
  Cluster cluster = one_node(2, 100_GBps);
  cluster.chip.communication.fixed = {.compute_share = 0.5};
  const SimulationResult result = simulate(graph, cluster, {});
  EXPECT_EQ(result.step_time, 125ms);
  EXPECT_EQ(result.breakdowns[0].compute, 125ms);
}

TEST(SimulateTest, FlowsShareALinkAndLatencyBandwidthDoesNot) {
  // Ranks 0 and 1 both send 1 GB to rank 2: its link has 10 GB/s.
  GraphByHand hand(3);
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const auto boundary = static_cast<std::int32_t>(rank);
    hand.messages(
        rank, hand.stream(rank, "send"),
        {{.is_send = true, .communicator = all, .peer = 2, .boundary = boundary, .bytes = 1_GB}});
    hand.messages(2, hand.stream(2, "receive"),
                  {{.is_send = false,
                    .communicator = all,
                    .peer = rank,
                    .boundary = boundary,
                    .bytes = 1_GB}});
  }
  const OpGraph graph = hand.build();
  const Cluster cluster = one_node(3, 10_GBps);
  EXPECT_EQ(simulate(graph, cluster, {}).step_time, 200ms);
  EXPECT_EQ(simulate(graph, cluster, {.fidelity = Fidelity::kLatencyBandwidth}).step_time, 100ms);
}

// --- Memory, steps -------------------------------------------------------------------------------

TEST(SimulateTest, MemoryIsCountedAsItHappens) {
  GraphByHand hand(1);
  hand.program(0).hold(MemoryCategory::kParameters, 5_GB);
  const OpRef first = hand.compute_for(0, 10ms);
  const OpRef second = hand.compute_for(0, 10ms);
  hand.program(0).change_memory(first, {.bytes = 3_GB});
  hand.program(0).change_memory(first, {.at_end = true, .bytes = 3_GB});
  hand.program(0).change_memory(second, {.bytes = 4_GB});
  hand.program(0).change_memory(second, {.at_end = true, .bytes = 4_GB});
  const OpGraph graph = hand.build();
  const SimulationResult result = simulate(graph, one_node(1, 1_GBps), {});
  EXPECT_EQ(result.memory_peaks[0].bytes, 9_GB) << "not 12: the first is freed at that instant";
  EXPECT_EQ(result.memory_peaks[0].at, Time{10ms});
  EXPECT_EQ(result.memory_peaks[0].by_category[0], 5_GB);
}

// Both ops hold 3 GB, one in the first 10 ms, the other in the second: an op of 1 ms without memory
// parts them.
TEST(SimulateTest, OfTwoEqualPeaksTheFirstIsReported) {
  GraphByHand hand(2);
  for (const std::uint32_t rank : {0U, 1U}) {
    const OpRef first = hand.compute_for(rank, 10ms);
    hand.compute_for(rank, 1ms);
    const OpRef second = hand.compute_for(rank, 10ms);
    for (const bool at_end : {false, true}) {
      hand.program(rank).change_memory(first, {.at_end = at_end, .bytes = 3_GB});
      hand.program(rank).change_memory(
          second, {.category = MemoryCategory::kBuffers, .at_end = at_end, .bytes = 3_GB});
    }
  }
  const OpGraph graph = hand.build();
  const SimulationResult result = simulate(graph, one_node(2, 1_GBps), {});
  const MemoryPeak& peak = result.memory_peaks[0];
  EXPECT_EQ(peak.bytes, 3_GB);
  EXPECT_EQ(peak.at, Time{});
  EXPECT_EQ(peak.op, OpId(0));
  EXPECT_EQ(peak.by_category[static_cast<std::size_t>(MemoryCategory::kActivations)], 3_GB);
  EXPECT_EQ(peak.by_category[static_cast<std::size_t>(MemoryCategory::kBuffers)], Bytes(0));
  EXPECT_EQ(result.peak_rank, RankId(0)) << "the lowest of the ranks that need equally much";
}

TEST(SimulateTest, ALeakIsABugThatEndsTheRun) {
  GraphByHand hand(1);
  hand.program(0).change_memory(hand.compute_for(0, 1ms), {.bytes = 1_GB});
  const OpGraph graph = hand.build();
  EXPECT_THROW(simulate(graph, one_node(1, 1_GBps), {}), std::logic_error);
}

TEST(SimulateTest, BytesThatThePlanDidNotSayEndTheRun) {
  OpGraph graph = one_collective(2, CollectiveOp::kAllGather, 2_GB, AlgorithmChoice::kRing);
  graph.planned_bytes.emplace();
  (*graph.planned_bytes)[static_cast<std::size_t>(GraphByHand::kCollectives)] = 2_GB;
  EXPECT_NO_THROW(simulate(graph, one_node(2, 1_GBps), {}));
  (*graph.planned_bytes)[static_cast<std::size_t>(GraphByHand::kCollectives)] =
      Bytes(2'000'000'001);
  EXPECT_THROW(simulate(graph, one_node(2, 1_GBps), {}), std::logic_error);
}

// A step is 30 ms of compute; beside it, an op of 20 ms whose next turn waits for the compute of
// the previous step. The second step ends 30 ms after the first.
TEST(SimulateTest, StepTimeOfSeveralStepsIsThatOfTheLaterOnes) {
  GraphByHand hand(2);
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const StreamId stream = hand.stream(rank, "dp");
    const OpRef gathered = hand.collective(
        rank, stream, {.communicator = all, .op = CollectiveOp::kAllGather, .bytes = 4_GB});
    const OpRef computed = hand.compute_for(rank, 30ms, {after(gathered)});
    hand.program(rank).add_dependency(gathered, after_previous_step(computed));
  }
  const OpGraph graph = hand.build();
  const Cluster cluster = one_node(2, 100_GBps);
  EXPECT_EQ(simulate(graph, cluster, {}).step_time, 50ms);
  const SimulationResult three = simulate(graph, cluster, {.steps = 3});
  EXPECT_EQ(three.step_time, 50ms);
  EXPECT_EQ(three.window, 100ms);
  EXPECT_EQ(three.breakdown.compute, 30ms);
  EXPECT_EQ(three.breakdown.sum(), 50ms);
  EXPECT_EQ(three.breakdowns[0].sum(), 100ms);
}

// --- What goes wrong -----------------------------------------------------------------------------

TEST(SimulateTest, ADeadlockIsReportedWithEveryWaitAndTheCycle) {
  // Each rank receives before it sends, on one stream.
  GraphByHand hand(2);
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const auto boundary = static_cast<std::int32_t>(rank);
    const StreamId stream = hand.stream(rank, "p2p");
    hand.messages(rank, stream,
                  {{.is_send = false,
                    .communicator = all,
                    .peer = 1 - rank,
                    .boundary = 1 - boundary,
                    .bytes = 1_GB}});
    hand.messages(rank, stream,
                  {{.is_send = true,
                    .communicator = all,
                    .peer = 1 - rank,
                    .boundary = boundary,
                    .bytes = 1_GB}});
  }
  const OpGraph graph = hand.build();
  try {
    simulate(graph, one_node(2, 1_GBps), {});
    FAIL() << "expected DeadlockError";
  } catch (const DeadlockError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("rank 0, stream 'p2p', op 0"), std::string::npos) << text;
    EXPECT_NE(text.find("waits for the send of activation, micro-batch 0, boundary 1 by rank 1"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("cycle:\n  rank 0, stream 'p2p', op 0, which waits for\n"
                        "  rank 1, stream 'p2p', op 0, which waits for\n  the first"),
              std::string::npos)
        << text;
  }
}

TEST(SimulateTest, AMissingMemberOfACollectiveIsNamed) {
  GraphByHand hand(3);
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    hand.collective(rank, hand.stream(rank, "dp"),
                    {.communicator = all, .op = CollectiveOp::kAllReduce, .bytes = 1_GB});
  }
  const OpGraph graph = hand.build();
  try {
    simulate(graph, one_node(3, 1_GBps), {});
    FAIL() << "expected DeadlockError";
  } catch (const DeadlockError& error) {
    EXPECT_NE(std::string(error.what()).find("waits for rank 2 to join group"), std::string::npos)
        << error.what();
  }
}

TEST(SimulateTest, ACircleOfDependenciesIsShown) {
  GraphByHand hand(1);
  const StreamId other = hand.stream(0, "other");
  hand.communicator();
  const OpRef first = hand.compute_for(0, 1ms, {{other, 0, false}});
  hand.collective(0, other, {.communicator = CommunicatorId(0), .bytes = 1_GB}, {after(first)});
  const OpGraph graph = hand.build();
  try {
    simulate(graph, one_node(1, 1_GBps), {});
    FAIL() << "expected DeadlockError";
  } catch (const DeadlockError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("cycle:\n  rank 0, stream 'compute', op 0"), std::string::npos) << text;
  }
}

TEST(SimulateTest, MembersThatDisagreeAreBothNamed) {
  GraphByHand hand(2);
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    hand.collective(rank, hand.stream(rank, "dp"),
                    {.communicator = all,
                     .op = rank == 0 ? CollectiveOp::kAllReduce : CollectiveOp::kAllGather,
                     .bytes = 1_GB});
  }
  const OpGraph graph = hand.build();
  try {
    simulate(graph, one_node(2, 1_GBps), {});
    FAIL() << "expected MismatchError";
  } catch (const MismatchError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("rank 0 issues all-reduce of 1000000000 bytes"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1 issues all-gather"), std::string::npos) << text;
  }
}

// --- Timelines -----------------------------------------------------------------------------------

TEST(SimulateTest, TimelinesHoldWhatTheRecordedRanksDid) {
  Pair pair;
  const OpRef sender = pair.hand.compute_for(0, 100ms);
  pair.hand.messages(0, pair.send, {pair.half(true, false)}, {after(sender)});
  pair.hand.messages(1, pair.receive, {pair.half(false, false)});
  const OpGraph graph = pair.hand.build();
  const SimulationResult result =
      simulate(graph, one_node(2, 10_GBps),
               {.recorded_ranks = {RankId(1), RankId(0)}, .record_links = true});
  ASSERT_EQ(result.timelines.size(), 2U);
  ASSERT_EQ(result.timelines[1].ops.size(), 1U);
  const TimelineOp& receive = result.timelines[1].ops[0];
  EXPECT_EQ(receive.started, Time{});
  EXPECT_EQ(receive.moving, Time{100ms});
  EXPECT_EQ(receive.ended, Time{300ms});
  ASSERT_EQ(result.flows.size(), 1U);
  EXPECT_EQ(result.flows[0].from_timeline, 0U);
  EXPECT_EQ(result.flows[0].from_entry, 1U) << "after the compute op";
  double carried = 0;
  for (const LinkSeries& series : result.link_series) {
    EXPECT_LE(series.bytes.size(), 2000U);
    for (const double bytes : series.bytes) carried += bytes;
  }
  EXPECT_NEAR(carried, 4e9, 10) << "2 GB over two links";
}

}  // namespace
}  // namespace stepsim
