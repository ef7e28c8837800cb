// GOAL schedules and workloads of AICB, made by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "import/aicb/aicb.h"
#include "import/goal/goal.h"
#include "import/replay.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using std::chrono::nanoseconds;

Duration time_of_job(const TraceJob& job) {
  const Cluster cluster = one_node(static_cast<int>(job.ranks), Bandwidth(1e9));
  return simulate(replay(job, {.chip = &cluster.chip}), cluster, {}).step_time;
}

GoalJob goal_of(const std::string& text) {
  std::vector<Problem> problems;
  GoalJob read = read_goal(text, "x.goal", problems);
  EXPECT_TRUE(problems.empty()) << problems.front().field << ": " << problems.front().message;
  return read;
}

// 100 ns, then 1,000 bytes at 1 GB/s, then 50 ns.
TEST(GoalTest, OpsWaitForWhatTheyRequire) {
  const GoalJob read = goal_of(
      "num_ranks 2\nrank 0 {\nl1: calc 100\nl2: send 1000b to 1 tag 4\nl2 requires l1\n}\n"
      "rank 1 {\nl1: recv 1000b from 0 tag 4\nl2: calc 50\nl2 requires l1\n}\n");
  EXPECT_EQ(time_of_job(read.job), nanoseconds(1'150));
}

// A tree of 4: rank 0 sends to 1 and 2, then 1 sends to 3. Each message takes 1,000 ns; rank 0
// sends its two at once, over one link: 2,000 ns for both, then 1,000.
TEST(GoalTest, ATreeTakesItsLongestBranch) {
  const GoalJob read = goal_of(
      "num_ranks 4\nrank 0 {\nl1: send 1000b to 1 tag 0\nl2: send 1000b to 2 tag 0\n}\n"
      "rank 1 {\nl1: recv 1000b from 0 tag 0\nl2: send 1000b to 3 tag 0\nl2 requires l1\n}\n"
      "rank 2 {\nl1: recv 1000b from 0 tag 0\n}\nrank 3 {\nl1: recv 1000b from 1 tag 0\n}\n");
  EXPECT_EQ(time_of_job(read.job), nanoseconds(3'000));
}

// b starts with a, 100 ns after the first.
TEST(GoalTest, IrequiresWaitsForTheStart) {
  const GoalJob read = goal_of(
      "num_ranks 1\nrank 0 {\nfirst: calc 100\na: calc 500\na requires first\nb: calc 20 cpu 1\n"
      "b irequires a\n}\n");
  const TraceRank& rank = read.job.programs[0];
  ASSERT_EQ(rank.dependencies_of(2).size(), 1U);
  EXPECT_EQ(rank.dependencies_of(2)[0], 0U);
  EXPECT_EQ(time_of_job(read.job), nanoseconds(600));
}

TEST(GoalTest, AWrittenScheduleReadsAsTheSame) {
  const GoalJob read = goal_of(
      "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\n}\nrank 1 {\nl1: recv 8b from 0 tag 0\n}\n");
  std::vector<Problem> problems;
  const std::string text = goal_text(read.job, problems);
  EXPECT_EQ(goal_text(goal_of(text).job, problems), text);
  EXPECT_TRUE(problems.empty());
}

TEST(GoalTest, NamesBadLines) {
  std::vector<Problem> problems;
  read_goal("num_ranks 1\nrank 0 {\nl1: calc\nl2: send 8b to 3 tag 0\nl1 requires l9\n", "x.goal",
            problems);
  ASSERT_EQ(problems.size(), 4U);
  EXPECT_EQ(problems[0].field, "x.goal:3");
  EXPECT_EQ(problems[1].message, "must be: send Nb to RANK, or recv Nb from RANK");
  EXPECT_EQ(problems[2].message, "names a label that no line above has");
  EXPECT_EQ(problems[3].message, "ends inside rank 0");
}

AicbJob aicb_of(const std::string& text, std::uint32_t ranks = 0) {
  std::vector<Problem> problems;
  AicbJob read = read_aicb(text, "x.txt", ranks, problems);
  EXPECT_TRUE(problems.empty()) << problems.front().field << ": " << problems.front().message;
  return read;
}

// Forward 1,000 ns and an all-reduce of 1,000 bytes on 2 ranks (1,000 ns at 1 GB/s), then 2,000 and
// 3,000 ns of backward.
TEST(AicbTest, AStepIsForwardAndBackward) {
  const AicbJob read = aicb_of(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 all_gpus: 2\n1\n"
      "layer -1 1000 ALLREDUCE 1000 2000 NONE 0 3000 NONE 0 100\n");
  EXPECT_EQ(time_of_job(read.job), nanoseconds(7'000));
}

TEST(AicbTest, GroupsAreThoseOfTheHeader) {
  const AicbJob read = aicb_of(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 all_gpus: 8\n2\n"
      "a -1 1 ALLGATHER 8 1 NONE 0 1 ALLREDUCE 8 1\nb -1 1 ALLTOALL_EP 8 1 NONE 0 1 "
      "ALLREDUCE_DP_EP 8 1\n");
  const auto has = [&](const std::vector<std::uint32_t>& ranks) {
    return std::ranges::find(read.job.groups, ranks) != read.job.groups.end();
  };
  EXPECT_TRUE(has({2, 3}));        // tensor
  EXPECT_TRUE(has({1, 3, 5, 7}));  // data
  EXPECT_TRUE(has({4, 6}));        // experts: two data ranks
  EXPECT_TRUE(has({2, 6}));        // the same experts
}

TEST(AicbTest, ListsBadRows) {
  std::vector<Problem> problems;
  read_aicb("MICRO\n2\na -1 1 NONE 0 1 NONE 0 x SUM 8 1\nb -1 1\n", "x.txt", 0, problems);
  ASSERT_EQ(problems.size(), 4U);
  EXPECT_EQ(problems[0].message, "must have whole nanoseconds, is x");
  EXPECT_EQ(problems[1].field, "x.txt:3");
  EXPECT_EQ(problems[2].message, "must have 12 columns, has 3");
  EXPECT_EQ(problems[3].message, "does not say how many ranks there are: --ranks says so");
}

// The job with a program for each rank, whose collectives name groups.
TraceJob unfolded(const TraceJob& job) {
  TraceJob whole = job;
  whole.programs.assign(job.ranks, job.programs[0]);
  for (std::uint32_t rank = 0; rank < job.ranks; ++rank) {
    for (TraceNode& node : whole.programs[rank].nodes) {
      if (node.kind != TraceNodeKind::kCollective) continue;
      const auto& division = job.divisions[node.group];
      const auto own = std::ranges::find_if(division, [&](std::uint32_t group) {
        return std::ranges::find(job.groups[group], rank) != job.groups[group].end();
      });
      node.group = *own;
    }
  }
  whole.divisions.clear();
  return whole;
}

// One program stands for all ranks; what they take is what as many programs take.
TEST(AicbTest, AllRanksFoldToOneProgram) {
  const std::string rows =
      "2\na -1 500 ALLGATHER 9000 700 REDUCESCATTER 8000 40 ALLREDUCE 80000 1\n"
      "b -1 20 ALLTOALL_EP 8000 30 ALLTOALL_EP 4000 11 ALLREDUCE_DP_EP 6000 1\n";
  const AicbJob read = aicb_of(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 all_gpus: 8\n" +
      rows);
  ASSERT_EQ(read.job.programs.size(), 1U);
  EXPECT_EQ(read.job.divisions.size(), 5U);
  const Cluster cluster = one_node(8, Bandwidth(1e9));
  const OpGraph folded = replay(read.job, {.chip = &cluster.chip});
  const Duration each =
      simulate(replay(unfolded(read.job), {.chip = &cluster.chip}), cluster, {}).step_time;
  EXPECT_EQ(simulate(folded, cluster, {}).step_time, each);
  EXPECT_EQ(simulate(folded, cluster, {.fold = true}).step_time, each);
}

TEST(AicbTest, AMillionRanksAreRead) {
  const AicbJob read = aicb_of("MICRO\n1\na -1 1 ALLREDUCE 8 1 NONE 0 1 NONE 0 1\n", 1'000'000);
  EXPECT_EQ(read.job.nodes(), 4U);
}

}  // namespace
}  // namespace stepsim
