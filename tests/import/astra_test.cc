// ASTRA-sim's published outputs (its documentation and tests of examples/network/analytical): a
// ring at "50 GB/s" and 500 ns, 4 chunks.

#include "import/astra/astra.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace stepsim {
namespace {

std::string written(const std::string& name, const std::string& text) {
  const std::string path = (temporary_folder() / name).string();
  std::ofstream(path) << text;
  return path;
}

TraceNode collective(CollectiveOp op, std::int64_t bytes) {
  TraceNode node;
  node.kind = TraceNodeKind::kCollective;
  node.op = op;
  node.bytes = Bytes(bytes);
  return node;
}

constexpr std::int64_t kMegabyte = 1 << 20;

TEST(AstraTest, ReproducesItsPublishedCycles) {
  const AstraDimension ring{.topology = "Ring", .size = 16, .bandwidth = 50, .latency_ns = 500};
  AstraSystem system;
  system.chunks = 4;
  system.memory_gb_per_s = 1600;  // of its example's system
  // 1 MiB is the shard of a rank.
  EXPECT_EQ(astra_time(collective(CollectiveOp::kAllGather, 16 * kMegabyte), 16, ring, system),
            std::chrono::nanoseconds(323'560));
  EXPECT_EQ(astra_time(collective(CollectiveOp::kAllReduce, kMegabyte), 8, ring, system),
            std::chrono::nanoseconds(64'440));
  system.memory_gb_per_s = 50;  // of its regression test's
  EXPECT_EQ(astra_time(collective(CollectiveOp::kAllReduce, kMegabyte), 8, ring, system),
            std::chrono::nanoseconds(117'780));
}

TEST(AstraTest, ReadsItsNetwork) {
  std::vector<Problem> problems;
  const auto dimensions = read_astra_network(
      written("network.yml",
              "topology: [ Switch, Ring ]  # innermost first\nnpus_count: [ 8, 2 ]\n"
              "bandwidth: [400, 50.5 ]\nlatency: [ 936.25, 1000 ]\n"),
      problems);
  EXPECT_TRUE(problems.empty());
  ASSERT_EQ(dimensions.size(), 2U);
  EXPECT_EQ(dimensions[0].topology, "Switch");
  EXPECT_EQ(dimensions[1].size, 2U);
  EXPECT_EQ(dimensions[1].bandwidth, 50.5);
  EXPECT_EQ(dimensions[0].latency_ns, 936.25);
}

TEST(AstraTest, ListsAllThatIsWrongWithANetwork) {
  std::vector<Problem> problems;
  read_astra_network(written("bad.yml",
                             "topology: [ Torus ]\nnpus_count: [ 0 ]\n"
                             "bandwidth: [ tbd ]\nlatency: [ -1 ]\n"),
                     problems);
  ASSERT_EQ(problems.size(), 4U);
  EXPECT_EQ(problems[0].message, "must be Ring, FullyConnected or Switch, is \"Torus\"");
  EXPECT_EQ(problems[2].message, "must be a number above 0, is \"tbd\"");
  problems.clear();
  read_astra_network(written("old.yml", "link-latency: 5\n"), problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].field, "old.yml:1");
}

TEST(AstraTest, TellsWhichKeysOfTheSystemCountForNothing) {
  std::vector<Problem> problems;
  const AstraSystem system = read_astra_system(
      written("system.json",
              R"({"preferred-dataset-splits": 4, "peak-perf": 700, "boost-mode": 0})"),
      problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(system.chunks, 4);
  EXPECT_EQ(system.peak_tflops, 700);
  ASSERT_EQ(system.notes.size(), 1U);
  EXPECT_EQ(system.notes[0], "\"boost-mode\" of the system has no counterpart");
}

TEST(AstraTest, HasNoTimesForOtherCollectives) {
  TraceJob job;
  job.ranks = 2;
  job.names = {"exchange"};
  job.groups = {{0, 1}};
  job.programs.resize(2);
  job.programs[0].add(collective(CollectiveOp::kAllToAll, 8), {});
  std::vector<Problem> problems;
  check_astra_times(job, {{.topology = "Ring", .size = 2, .bandwidth = 1, .latency_ns = 1}}, {},
                    problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].message.find("exchange is none"), std::string::npos);
  // A reduction needs the memory's bandwidth.
  problems.clear();
  job.programs[0].nodes.clear();
  job.programs[0].add(collective(CollectiveOp::kAllReduce, 8), {});
  check_astra_times(job, {{.topology = "Ring", .size = 2, .bandwidth = 1, .latency_ns = 1}}, {},
                    problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].field, "--astra-system");
}

}  // namespace
}  // namespace stepsim
