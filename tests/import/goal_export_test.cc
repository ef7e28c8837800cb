// Op graphs as GOAL schedules: collectives are the messages of their algorithm.

#include "import/goal/goal_export.h"

#include <gtest/gtest.h>

#include <string>

#include "import/goal/goal.h"
#include "import/replay.h"
#include "sim/program/graph_by_hand.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr std::uint32_t kGpus = 4;

// Each rank computes for as many microseconds as its number, then all meet; then rank 0 sends on.
OpGraph graph_of(CollectiveOp op, AlgorithmChoice algorithm) {
  GraphByHand hand(kGpus);
  hand.graph().names = {"op"};
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < kGpus; ++rank) {
    const OpRef made = hand.compute_for(rank, microseconds(rank));
    const OpRef met = hand.collective(
        rank, hand.stream(rank, "sums"),
        {.communicator = all, .op = op, .bytes = Bytes(4'000'000), .algorithm = algorithm},
        {after(made)});
    hand.compute_for(rank, microseconds(10), {after(met)});
  }
  return hand.build();
}

Duration time_of_graph(const OpGraph& graph, const Cluster& cluster) {
  SimulationOptions options;
  options.granularity = Granularity::kStepped;
  return simulate(graph, cluster, options).step_time;
}

GoalJob written_and_read(const TraceJob& job, std::string& text) {
  std::vector<Problem> problems;
  text = goal_text(job, problems);
  GoalJob read = read_goal(text, "x.goal", problems);
  EXPECT_TRUE(problems.empty()) << problems.front().field << ": " << problems.front().message;
  return read;
}

class GoalExportTest : public testing::TestWithParam<std::pair<CollectiveOp, AlgorithmChoice>> {};

// The replay sends what the stepped run sends, so it takes as long, to the nanosecond that calc is
// rounded to; and what was read is written as the same text.
TEST_P(GoalExportTest, TakesAsLongAndReadsBack) {
  const Cluster cluster = one_node(kGpus, 100_GBps, nanoseconds(500));
  const OpGraph graph = graph_of(GetParam().first, GetParam().second);
  const GoalExport made = export_goal(graph, cluster);
  std::string text;
  const GoalJob read = written_and_read(made.job, text);
  const Duration replayed =
      simulate(replay(read.job, {.chip = &cluster.chip}), cluster, {}).step_time;
  const Duration stepped = time_of_graph(graph, cluster);
  EXPECT_LE(replayed - stepped, Duration(nanoseconds(10)));
  EXPECT_LE(stepped - replayed, Duration(nanoseconds(10)));
  EXPECT_GT(stepped, microseconds(20));
  std::string again;
  written_and_read(read.job, again);
  EXPECT_EQ(again, text);
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, GoalExportTest,
    testing::Values(std::pair(CollectiveOp::kAllReduce, AlgorithmChoice::kRing),
                    std::pair(CollectiveOp::kAllReduce, AlgorithmChoice::kHalvingDoubling),
                    std::pair(CollectiveOp::kAllGather, AlgorithmChoice::kRing),
                    std::pair(CollectiveOp::kReduceScatter, AlgorithmChoice::kRing),
                    std::pair(CollectiveOp::kAllToAll, AlgorithmChoice::kAuto)));

// Both trees send up and down: each of n members but the root sends its half to its parent, and
// each parent sends it back: 2 (n - 1) messages of half the buffer in each tree. Messages of both
// trees to one rank follow one another in a replay, so it may take longer.
TEST(GoalExportTest, TreesSendAllTheirMessages) {
  const Cluster cluster = one_node(kGpus, 100_GBps);
  const OpGraph graph = graph_of(CollectiveOp::kAllReduce, AlgorithmChoice::kDoubleBinaryTree);
  const GoalExport made = export_goal(graph, cluster);
  Bytes sent{};
  for (const TraceRank& rank : made.job.programs) {
    for (const TraceNode& node : rank.nodes) {
      if (node.kind == TraceNodeKind::kSend) sent += node.bytes;
    }
  }
  EXPECT_EQ(sent, Bytes(2 * 2 * (kGpus - 1) * 2'000'000));
  std::string text;
  const GoalJob read = written_and_read(made.job, text);
  const Duration replayed =
      simulate(replay(read.job, {.chip = &cluster.chip}), cluster, {}).step_time;
  EXPECT_GE(replayed, time_of_graph(graph, cluster));
}

// 2 (n - 1) rounds of a ring, a message each.
TEST(GoalExportTest, ARingHasItsRounds) {
  const Cluster cluster = one_node(kGpus, 100_GBps);
  const GoalExport made =
      export_goal(graph_of(CollectiveOp::kAllReduce, AlgorithmChoice::kRing), cluster);
  ASSERT_EQ(made.job.programs.size(), kGpus);
  std::size_t sends = 0;
  Bytes sent{};
  for (const TraceNode& node : made.job.programs[0].nodes) {
    if (node.kind != TraceNodeKind::kSend) continue;
    ++sends;
    sent += node.bytes;
  }
  EXPECT_EQ(sends % (2 * (kGpus - 1)), 0U);
  EXPECT_EQ(sent, Bytes(6'000'000));  // 2 (n - 1) / n of 4 MB
  EXPECT_TRUE(made.losses.empty());
}

}  // namespace
}  // namespace stepsim
