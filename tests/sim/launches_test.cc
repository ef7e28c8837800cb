// The host's time line: runs by hand of a few ops on chips of 1 PFLOP/s.

#include <gtest/gtest.h>

#include <string>

#include "sim/program/graph_by_hand.h"
#include "sim/run/deadlock_report.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

// A graph whose hosts launch every op of every rank, one launch an op.
struct LaunchedGraph : GraphByHand {
  explicit LaunchedGraph(std::uint32_t ranks, Duration launch, std::uint32_t queue_depth = 1024,
                         const std::vector<std::uint32_t>& stages = {})
      : GraphByHand(ranks, stages) {
    graph().host = {.launch = launch, .queue_depth = queue_depth};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) program(rank).launch_by_host();
  }
};

SimulationResult run(LaunchedGraph& hand, int ranks, std::uint32_t steps = 1) {
  const OpGraph graph = hand.build();
  return simulate(graph, one_node(ranks, 1_GBps), {.steps = steps});
}

Duration path_of(const SimulationResult& result, const std::string& label) {
  for (const PathPart& part : result.critical_path) {
    if (part.label == label) return part.duration;
  }
  return {};
}

// Launched at 10, 20 and 30 ms; 4 ms each. The last ends at 30 + 4.
TEST(LaunchesTest, ShortOpsWaitForTheirHost) {
  LaunchedGraph hand(1, 10ms);
  for (int i = 0; i < 3; ++i) hand.compute_for(0, 4ms);
  const SimulationResult result = run(hand, 1);
  EXPECT_EQ(result.step_time, 34ms);
  EXPECT_EQ(result.breakdown.compute, 12ms);
  EXPECT_EQ(result.breakdown.launch, 22ms);
  EXPECT_EQ(path_of(result, "launch"), 30ms) << "3 launches, and the last op";
  EXPECT_EQ(path_of(result, "compute"), 4ms);
}

// The second op could have started when the first had ended, at 14, and was launched at 20.
TEST(LaunchesTest, ATimelineSaysSinceWhenAnOpWaited) {
  LaunchedGraph hand(1, 10ms);
  for (int i = 0; i < 2; ++i) hand.compute_for(0, 4ms);
  const OpGraph graph = hand.build();
  const SimulationResult result =
      simulate(graph, one_node(1, 1_GBps), {.recorded_ranks = {RankId(0)}});
  const TimelineOp& second = result.timelines[0].ops[1];
  EXPECT_EQ(second.ready.since_start, 14ms);
  EXPECT_EQ(second.started.since_start, 20ms);
}

// The chip is the bottleneck: only the first launch is seen.
TEST(LaunchesTest, LongOpsHideTheirLaunches) {
  LaunchedGraph hand(1, 10ms);
  for (int i = 0; i < 3; ++i) hand.compute_for(0, 40ms);
  const SimulationResult result = run(hand, 1);
  EXPECT_EQ(result.step_time, 130ms);
  EXPECT_EQ(result.breakdown.launch, 10ms);
}

// Kernels of 1, 50 and 1 ms, launched at 10, 20 and 30 ms, end at 11, 70 and 71: 52 ms of work that
// without a hole begins at 71 - 52 = 19 ms.
TEST(LaunchesTest, AKernelOfARunWaitsForItsOwnLaunch) {
  LaunchedGraph hand(1, 10ms);
  hand.compute_for(0, 1ms);
  std::vector<Kernel>& kernels = hand.graph().compute_works[0].kernels;
  kernels.insert(kernels.end(), 2, kernels.front());
  kernels[1].flops = Flops(50e12);
  OpGraph graph = hand.build();
  graph.programs[0].launches[0].launches = launches_of(graph.compute_works[0]);
  const SimulationResult result = simulate(graph, one_node(1, 1_GBps), {});
  EXPECT_EQ(result.step_time, 71ms);
  EXPECT_EQ(result.breakdown.launch, 19ms);
  graph.compute_works[0].kernels[2].launches = 20;
  graph.programs[0].launches[0].launches = launches_of(graph.compute_works[0]);
  EXPECT_EQ(simulate(graph, one_node(1, 1_GBps), {}).step_time, 221ms) << "22 launches, then 1 ms";
}

TEST(LaunchesTest, KernelsOfAGraphCostNoLaunches) {
  LaunchedGraph hand(1, 10ms);
  hand.compute_for(0, 1ms);
  std::vector<Kernel>& kernels = hand.graph().compute_works[0].kernels;
  kernels.insert(kernels.end(), 2, kernels.front());
  for (Kernel& kernel : kernels) kernel.launches = 0;
  EXPECT_EQ(launches_of(hand.graph().compute_works[0]), 1);
  EXPECT_EQ(run(hand, 1).step_time, 13ms) << "a launch of the graph, and 3 kernels";
}

// An op of 100 ms, then ten of 1 ms. With a long queue these are launched beside the first, which
// ends at 110. With a queue of 4, op 4 is launched when op 0 has ended at 110, so at 120; then 10
// ms an op: op 10 starts at 180.
TEST(LaunchesTest, TheHostIsAheadByNoMoreThanTheQueue) {
  for (const auto& [depth, step] : {std::pair{1024U, 120ms}, std::pair{4U, 181ms}}) {
    LaunchedGraph hand(1, 10ms, depth);
    hand.compute_for(0, 100ms);
    for (int i = 0; i < 10; ++i) hand.compute_for(0, 1ms);
    EXPECT_EQ(run(hand, 1).step_time, step) << depth;
  }
}

// Both sides of the limit: the fifth op is the first that a queue of 4 keeps back.
TEST(LaunchesTest, AQueueOfFourHoldsFour) {
  for (const auto& [ops, step] : {std::pair{3, 113ms}, std::pair{4, 121ms}}) {
    LaunchedGraph hand(1, 10ms, 4);
    hand.compute_for(0, 100ms);
    for (int i = 0; i < ops; ++i) hand.compute_for(0, 1ms);
    EXPECT_EQ(run(hand, 1).step_time, step) << ops;
  }
}

// The queue goes on over steps: two ops a step, at 10, 20, 30 and 40 ms with a long queue. With a
// queue of 1 each is launched when the one before has ended: 10 + 15 an op.
TEST(LaunchesTest, TheQueueGoesOnInTheNextStep) {
  for (const auto& [depth, end] : {std::pair{1024U, 70ms}, std::pair{1U, 100ms}}) {
    LaunchedGraph hand(1, 10ms, depth);
    for (int i = 0; i < 2; ++i) hand.compute_for(0, 15ms);
    EXPECT_EQ(run(hand, 1, 2).end.since_start, Duration(end)) << depth;
  }
}

// Op 0 ends at 110. The host reads its result, so op 1 is launched at 120 and not at 20.
TEST(LaunchesTest, AHostThatReadsAResultWaitsForIt) {
  LaunchedGraph hand(1, 10ms);
  const OpRef first = hand.compute_for(0, 100ms);
  hand.compute_for(0, 1ms);
  hand.program(0).wait_on_host(first);
  const SimulationResult result = run(hand, 1);
  EXPECT_EQ(result.step_time, 121ms);
  EXPECT_EQ(result.breakdown.launch, 20ms);
  EXPECT_EQ(path_of(result, "compute"), 101ms);
}

// A collective of 1 GB at 1 GB/s between two ranks, one of whose hosts is busy for 3 launches
// before it: at 40 ms. The other rank has posted at 20 and waits for its peer; the time of the
// launch is its own. The op behind it runs at once.
TEST(LaunchesTest, ALateHostIsIdleTimeOfItsPeers) {
  LaunchedGraph hand(2, 10ms);
  const CommunicatorId all = hand.communicator();
  for (const std::uint32_t rank : {0U, 1U}) {
    for (std::uint32_t i = 0; i < 1 + 2 * rank; ++i) hand.compute_for(rank, 1ms);
    const OpRef sums =
        hand.collective(rank, hand.stream(rank, "sums"), {.communicator = all, .bytes = 1_GB});
    hand.compute_for(rank, 1ms, {after(sums)});
  }
  const SimulationResult result = run(hand, 2);
  const Breakdown& early = result.breakdowns[0];
  const Breakdown& late = result.breakdowns[1];
  EXPECT_EQ(early.launch, 19ms) << "10 to the first op, 9 to the collective";
  EXPECT_EQ(early.idle, 20ms) << "from 20 to 40";
  EXPECT_EQ(late.launch, 37ms);
  EXPECT_EQ(late.idle, 0ms);
  EXPECT_EQ(early.sum(), result.window);
}

TEST(LaunchesTest, WithoutAHostNothingWaits) {
  GraphByHand hand(1);
  for (int i = 0; i < 3; ++i) hand.compute_for(0, 4ms);
  const OpGraph graph = hand.build();
  const SimulationResult result = simulate(graph, one_node(1, 1_GBps), {});
  EXPECT_EQ(result.step_time, 12ms);
  EXPECT_EQ(result.breakdown.launch, 0ms);
}

// Op 0 waits for a collective that the host launches only when op 0 has ended.
TEST(LaunchesTest, ADeadlockNamesTheHost) {
  LaunchedGraph hand(1, 10ms);
  const CommunicatorId all = hand.communicator();
  const StreamId sums = hand.stream(0, "sums");
  const OpRef first = hand.compute_for(0, 1ms, {{.stream = sums, .position = 0}});
  hand.program(0).wait_on_host(first);
  hand.collective(0, sums, {.communicator = all, .bytes = 1_GB});
  try {
    run(hand, 1);
    FAIL() << "the run ended";
  } catch (const DeadlockError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("its launch by the host, which waits for stream "
                        "'compute'"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace stepsim
