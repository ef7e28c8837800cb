// Chakra traces made by hand: what each field means, and what is refused.

#include "import/chakra/chakra.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "import/chakra/chakra_export.h"
#include "import/chakra/chakra_node.h"
#include "import/chakra/wire.h"
#include "import/replay.h"
#include "sim/program/graph_by_hand.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

std::string framed(std::string_view message) {
  std::string text;
  append_varint(text, message.size());
  return text + std::string(message);
}

std::string trace_of(const std::vector<ChakraNode>& nodes) {
  std::string metadata;
  append_bytes(metadata, 1, "0.0.4");
  std::string text = framed(metadata);
  for (const ChakraNode& node : nodes) text += framed(chakra_message(node));
  return text;
}

ChakraNode kernel(std::uint64_t id, std::uint64_t micros, std::vector<std::uint64_t> after = {}) {
  ChakraNode node;
  node.id = id;
  node.name = "gemm";
  node.type = ChakraType::kCompute;
  node.duration_micros = micros;
  node.after = std::move(after);
  return node;
}

ImportedJob read_good(const std::string& text) {
  std::vector<Problem> problems;
  ImportedJob read = read_chakra_text(text, problems);
  EXPECT_TRUE(problems.empty()) << problems.front().field << ": " << problems.front().message;
  return read;
}

std::string problem_of(const std::string& text) {
  std::vector<Problem> problems;
  read_chakra_text(text, problems);
  return problems.empty() ? "" : problems.front().message;
}

TEST(ChakraTest, ReadsKernelsInTheOrderOfTheirIds) {
  const ImportedJob read = read_good(trace_of({kernel(7, 3, {2}), kernel(2, 5)}));
  EXPECT_EQ(read.schema, "0.0.4");
  const TraceRank& rank = read.job.programs.at(0);
  ASSERT_EQ(rank.nodes.size(), 2U);
  EXPECT_EQ(rank.nodes[0].kind, TraceNodeKind::kKernel);
  EXPECT_EQ(rank.nodes[0].time, Duration(5'000'000));  // 5 us
  ASSERT_EQ(rank.dependencies_of(1).size(), 1U);
  EXPECT_EQ(rank.dependencies_of(1)[0], 0U);
}

TEST(ChakraTest, AnOpOfTheProcessorIsNoKernel) {
  ChakraNode node = kernel(1, 4);
  node.is_on_host = true;
  EXPECT_EQ(read_good(trace_of({node})).job.programs[0].nodes[0].kind, TraceNodeKind::kOther);
}

TEST(ChakraTest, WorkWithoutATimeHasFlopsAndBytes) {
  ChakraNode node = kernel(1, 0);
  node.flops = 1'000;
  node.tensor_bytes = 64;
  const TraceNode read = read_good(trace_of({node})).job.programs[0].nodes[0];
  EXPECT_FALSE(read.time);
  EXPECT_EQ(read.flops.value(), 1'000);
  EXPECT_EQ(read.bytes.value(), 64);
}

TEST(ChakraTest, ACollectiveWithoutASizeTakesNoTime) {
  ChakraNode node = kernel(1, 9);
  node.type = ChakraType::kCollective;
  const ImportedJob read = read_good(trace_of({node}));
  EXPECT_EQ(read.job.programs[0].nodes[0].kind, TraceNodeKind::kNothing);
  ASSERT_EQ(read.notes.size(), 1U);
  EXPECT_EQ(read.notes[0], "1 collectives without comm_type or comm_size take no time");
}

TEST(ChakraTest, AParentThatIsNotInTheFileIsNotWaitedFor) {
  ChakraNode node = kernel(1, 9);
  std::string message = chakra_message(node);
  append_number(message, 4, 77);  // ctrl_deps
  const ImportedJob read = read_good(trace_of({}) + framed(message));
  EXPECT_TRUE(read.job.programs[0].dependencies.empty());
  EXPECT_EQ(read.notes.size(), 1U);
}

TEST(ChakraTest, ParentsThatWaitForTheirPartsAreNotWaitedFor) {
  std::string part = chakra_message(kernel(2, 5));
  append_number(part, 4, 1);  // ctrl_deps: its parent, which waits for it
  const ImportedJob read = read_good(trace_of({kernel(1, 5, {2})}) + framed(part));
  EXPECT_EQ(read.job.programs[0].dependencies.size(), 1U);
  ASSERT_EQ(read.notes.size(), 1U);
  EXPECT_NE(read.notes[0].find("ctrl_deps don't count: trace.0.et"), std::string::npos);
}

// Files of schema 0.0.1 have fields in place of attributes, and types without METADATA: COMP is 3.
TEST(ChakraTest, ReadsTheOldSchema) {
  std::string message;
  append_number(message, 1, 4);
  append_bytes(message, 2, "old");
  append_number(message, 3, 3);
  append_number(message, 7, 12);
  append_number(message, 12, 1'000);  // num_ops
  const ImportedJob read = read_good(framed("") + framed(message));
  EXPECT_EQ(read.job.programs[0].nodes[0].kind, TraceNodeKind::kKernel);
  EXPECT_EQ(read.job.programs[0].nodes[0].time, Duration(12'000'000));
}

TEST(ChakraTest, SaysWhereAFileEnds) {
  const std::string text = trace_of({kernel(1, 5)});
  const std::string cut = text.substr(0, text.size() - 3);
  EXPECT_EQ(problem_of(cut), "ends inside message 0, at byte 8 of " + std::to_string(cut.size()));
  EXPECT_EQ(problem_of(""), "is empty, at byte 0 of 0");
}

TEST(ChakraTest, RefusesWhatItCanNotRun) {
  EXPECT_EQ(problem_of(trace_of({kernel(1, 5, {9})})),
            "node 1 (gemm) waits for node 9, which does not exist");
  EXPECT_EQ(problem_of(trace_of({kernel(1, 5), kernel(1, 5)})), "has two nodes of id 1");
  ChakraNode send = kernel(1, 0);
  send.type = ChakraType::kSend;
  send.bytes = 8;
  EXPECT_EQ(problem_of(trace_of({send})),
            "node 1 (gemm) needs comm_dst, or a pg_name of two ranks");
  ChakraNode sum = kernel(1, 0);
  sum.type = ChakraType::kCollective;
  sum.collective = 0;
  sum.bytes = 8;
  sum.group = "5";
  EXPECT_EQ(
      problem_of(trace_of({sum})),
      "node 1 (gemm) names group \"5\", which neither a metadata node nor --groups describes");
  sum.group = "";
  sum.collective = 10;
  EXPECT_EQ(problem_of(trace_of({sum})), "node 1 (gemm) has comm_type 10; there are 0 to 9");
}

// What was exported is read and exported as the same bytes.
TEST(ChakraTest, ExportAndImportAreAFixedPoint) {
  GraphByHand hand(1);
  hand.graph().names = {"gemm"};
  const OpRef first = hand.compute_for(0, std::chrono::nanoseconds(1'500));
  hand.host(0, hand.stream(0, "host"),
            {.action = HostAction::kOther, .bytes = {}, .stays = false, .time = Duration(7)},
            {after(first)});
  hand.compute_for(0, std::chrono::nanoseconds(500));
  const ChipSpec chip = ideal_chip();
  const auto again = [&](const OpGraph& graph) {
    const ImportedJob read = read_good(chakra_file(graph, chip, 0));
    return replay(read.job, {.chip = &chip});
  };
  const OpGraph graph = again(hand.build());
  const std::string text = chakra_file(graph, chip, 0);
  EXPECT_EQ(chakra_file(again(graph), chip, 0), text);
  EXPECT_EQ(graph.compute_works[0].kernels[0].recorded, std::chrono::nanoseconds(1'500));
  EXPECT_EQ(graph.programs[0].dependencies.size(), 2U);
}

TEST(ChakraTest, RefusesTheJsonOfTheHost) {
  EXPECT_NE(problem_of(R"({"schema": "1.1.0", "nodes": []})").find("is JSON"), std::string::npos);
}

TEST(ChakraTest, GroupsStandInMetadata) {
  ChakraNode groups = kernel(1, 0);
  groups.type = ChakraType::kMetadata;
  groups.name = "## process_group:init ##";
  groups.input_values = R"(['[{"pg_name": "3", "ranks": [0]}]'])";
  ChakraNode sum = kernel(2, 0);
  sum.type = ChakraType::kCollective;
  sum.collective = 2;  // all-gather: the size is that of a shard
  sum.bytes = 8;
  sum.group = "3";
  const TraceNode read = read_good(trace_of({groups, sum})).job.programs[0].nodes[1];
  EXPECT_EQ(read.op, CollectiveOp::kAllGather);
  EXPECT_EQ(read.bytes.value(), 8);
}

}  // namespace
}  // namespace stepsim
