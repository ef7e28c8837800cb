// Jobs made by hand, replayed on clusters whose times can be worked out.

#include "import/replay.h"

#include <gtest/gtest.h>

#include <string>

#include "import/job_file.h"
#include "sim/base/error.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using std::chrono::microseconds;

TraceJob job_of(std::uint32_t ranks) {
  TraceJob job;
  job.source = "test";
  job.ranks = ranks;
  job.groups = {all_ranks(ranks)};
  job.names = {"op"};
  job.programs.resize(ranks);
  return job;
}

TraceNode kernel(Duration time) {
  TraceNode node;
  node.kind = TraceNodeKind::kKernel;
  node.time = time;
  return node;
}

TraceNode message(TraceNodeKind kind, std::uint32_t peer, Bytes bytes) {
  TraceNode node;
  node.kind = kind;
  node.peer = peer;
  node.bytes = bytes;
  return node;
}

Duration time_of_replay(const TraceJob& job, bool retimed = false) {
  const Cluster cluster = one_node(static_cast<int>(job.ranks), Bandwidth(1e9));
  return simulate(replay(job, {.chip = &cluster.chip, .retimed = retimed}), cluster, {}).step_time;
}

TEST(ReplayTest, KernelsOfOneLaneFollowOneAnother) {
  TraceJob job = job_of(1);
  job.programs[0].add(kernel(microseconds(3)), {});
  job.programs[0].add(kernel(microseconds(4)), {});
  EXPECT_EQ(time_of_replay(job), microseconds(7));
}

TEST(ReplayTest, TheHostRunsBesideTheChip) {
  TraceJob job = job_of(1);
  TraceNode host = kernel(microseconds(9));
  host.kind = TraceNodeKind::kOther;
  job.programs[0].add(host, {});
  job.programs[0].add(kernel(microseconds(4)), {});
  EXPECT_EQ(time_of_replay(job), microseconds(9));
  job.programs[0].add(kernel(microseconds(1)), std::array{0U});
  EXPECT_EQ(time_of_replay(job), microseconds(10));
}

// 1,000 bytes take 1 us. The receive is posted after 10 us: an eager send is over by then, and what
// follows it takes 5 us; one that waits begins at 10.
TEST(ReplayTest, SendsMayWaitForTheirReceives) {
  TraceJob job = job_of(2);
  job.programs[0].add(message(TraceNodeKind::kSend, 1, Bytes(1000)), {});
  job.programs[0].add(kernel(microseconds(5)), std::array{0U});
  job.programs[1].add(kernel(microseconds(10)), {});
  job.programs[1].add(message(TraceNodeKind::kReceive, 0, Bytes(1000)), std::array{0U});
  EXPECT_EQ(time_of_replay(job), microseconds(10));
  const Cluster cluster = one_node(2, Bandwidth(1e9));
  const OpGraph graph = replay(job, {.chip = &cluster.chip, .rendezvous = true});
  EXPECT_EQ(simulate(graph, cluster, {}).step_time, microseconds(16));
}

// Both send first, and receive once that is over.
TEST(ReplayTest, SendsThatWaitMayWaitForOneAnother) {
  TraceJob job = job_of(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    job.programs[rank].add(message(TraceNodeKind::kSend, 1 - rank, Bytes(1000)), {});
    job.programs[rank].add(message(TraceNodeKind::kReceive, 1 - rank, Bytes(1000)), std::array{0U});
  }
  EXPECT_GT(time_of_replay(job), Duration());
  const Cluster cluster = one_node(2, Bandwidth(1e9));
  const OpGraph graph = replay(job, {.chip = &cluster.chip, .rendezvous = true});
  EXPECT_THROW(simulate(graph, cluster, {}), DeadlockError);
}

TEST(ReplayTest, ANodeWithoutTimeHandsDependenciesOn) {
  TraceJob job = job_of(1);
  TraceNode host = kernel(microseconds(5));
  host.kind = TraceNodeKind::kOther;
  job.programs[0].add(host, {});
  job.programs[0].add(TraceNode{}, std::array{0U});
  job.programs[0].add(kernel(microseconds(2)), std::array{1U});
  EXPECT_EQ(time_of_replay(job), microseconds(7));
}

// 1 PFLOP/s and 1 TB/s: 2 GFLOP take 2 us, 5 MB take 5 us.
TEST(ReplayTest, RetimedKernelsTakeWhatTheChipMakesOfTheirWork) {
  TraceJob job = job_of(1);
  TraceNode node = kernel(microseconds(100));
  node.flops = Flops(2e9);
  job.programs[0].add(node, {});
  node.bytes = Bytes(5'000'000);
  job.programs[0].add(node, {});
  EXPECT_EQ(time_of_replay(job), microseconds(200));
  EXPECT_EQ(time_of_replay(job, true), microseconds(7));
}

// 1 MB at 1 GB/s takes 1 ms; the receiver waits for it, the sender for nothing.
TEST(ReplayTest, MessagesMatchByTagInOrder) {
  TraceJob job = job_of(2);
  job.programs[0].add(kernel(microseconds(10)), {});
  job.programs[0].add(message(TraceNodeKind::kSend, 1, Bytes(1'000'000)), std::array{0U});
  job.programs[1].add(message(TraceNodeKind::kReceive, 0, Bytes(1'000'000)), {});
  job.programs[1].add(kernel(microseconds(5)), std::array{0U});
  EXPECT_EQ(time_of_replay(job), microseconds(1'015));
}

// A ring all-reduce of 2 ranks moves its bytes once through each link: 1 MB at 1 GB/s.
TEST(ReplayTest, CollectivesAreSimulated) {
  TraceJob job = job_of(2);
  TraceNode sum;
  sum.kind = TraceNodeKind::kCollective;
  sum.bytes = Bytes(1'000'000);
  for (TraceRank& rank : job.programs) rank.add(sum, {});
  EXPECT_EQ(time_of_replay(job), microseconds(1'000));
}

TEST(ReplayTest, NodesThatWaitForOneAnotherAreRefused) {
  TraceJob job = job_of(1);
  job.programs[0].add(kernel(microseconds(1)), std::array{1U});
  job.programs[0].add(kernel(microseconds(1)), std::array{0U});
  EXPECT_THROW(time_of_replay(job), ConfigError);
}

TEST(ReplayTest, AWrittenJobReadsAsTheSame) {
  TraceJob job = job_of(2);
  job.programs[0].add(kernel(microseconds(10)), {});
  job.programs[0].add(message(TraceNodeKind::kSend, 1, Bytes(7)), std::array{0U});
  job.programs[1].add(message(TraceNodeKind::kReceive, 0, Bytes(7)), {});
  std::vector<Problem> problems;
  const std::optional<TraceJob> read = read_job(job_text(job), "job.json", problems);
  ASSERT_TRUE(read);
  EXPECT_EQ(job_text(*read), job_text(job));
  EXPECT_EQ(time_of_replay(*read), time_of_replay(job));
}

TEST(ReplayTest, ABadJobListsItsProblems) {
  std::vector<Problem> problems;
  EXPECT_FALSE(read_job(R"({"stepsim_workload": 1, "ranks": 1, "groups": [[0]], "names": [],
      "programs": [[{"kind": "kernal"}, {"kind": "send", "peer": 4, "after": [2]}]]})",
                        "job.json", problems));
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].field, "job.json: programs[0][0].kind");
  EXPECT_EQ(problems[1].message, "must be a whole number, 0 to 0, is 4");
  EXPECT_EQ(problems[2].message, "must be a whole number, 0 to 1, is 2");
}

}  // namespace
}  // namespace stepsim
