// Small profiles of XLA made by hand: planes, lines, nested events, kinds and directions.

#include "import/trace/xplane.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "import/chakra/wire.h"
#include "import/trace/read_trace.h"
#include "tests/support/temporary_folder.h"

namespace stepsim {
namespace {

std::string event(std::uint64_t kind, std::uint64_t offset_ns, std::uint64_t duration_ns) {
  std::string text;
  append_number(text, 1, kind);
  append_number(text, 2, offset_ns * 1000);
  append_number(text, 3, duration_ns * 1000);
  return text;
}

std::string line(std::string_view name, const std::vector<std::string>& events,
                 std::uint64_t origin_ns = 1000) {
  std::string text;
  append_bytes(text, 2, name);
  append_number(text, 3, origin_ns);
  for (const std::string& one : events) append_bytes(text, 4, one);
  return text;
}

// An entry of a map from an id to a message that has the id and a name.
std::string named(std::uint64_t id, std::string_view name, const std::string& more = "") {
  std::string message;
  append_number(message, 1, id);
  append_bytes(message, 2, name);
  message += more;
  std::string entry;
  append_number(entry, 1, id);
  append_bytes(entry, 2, message);
  return entry;
}

// Stats of an event's kind: 1 is hlo_category, by text; 2 is tf_op, by reference to stat `ref`.
std::string category(std::string_view text) {
  std::string stat;
  append_number(stat, 1, 1);
  append_bytes(stat, 5, text);
  std::string field;
  append_bytes(field, 5, stat);
  return field;
}

std::string path_of(std::uint64_t ref) {
  std::string stat;
  append_number(stat, 1, 2);
  append_number(stat, 7, ref);
  std::string field;
  append_bytes(field, 5, stat);
  return field;
}

std::string plane(std::string_view name, const std::vector<std::string>& lines) {
  std::string text;
  append_bytes(text, 2, name);
  for (const std::string& one : lines) append_bytes(text, 3, one);
  append_bytes(text, 4, named(1, "%while.1 = (s32[]) while(..)", category("while")));
  append_bytes(text, 4,
               named(2, "%fusion.7 = bf16[8,8]", category("convolution fusion") + path_of(9)));
  append_bytes(text, 4, named(3, "%fusion.8 = bf16[8,8]", category("loop fusion") + path_of(10)));
  append_bytes(text, 4, named(4, "all-reduce.3"));
  append_bytes(text, 4, named(5, "12"));
  append_bytes(text, 4, named(6, "ampere_bf16_s16816gemm_bf16_128x64"));
  append_bytes(text, 5, named(1, "hlo_category"));
  append_bytes(text, 5, named(2, "tf_op"));
  append_bytes(text, 5, named(9, "jit(step)/jvp(Model)/layers_3/mlp/dot_general:"));
  append_bytes(text, 5, named(10, "jit(step)/transpose(jvp(Model))/layers_12/mlp/mul:"));
  return text;
}

std::string written(const std::string& name, const std::vector<std::string>& planes) {
  std::string text;
  for (const std::string& one : planes) append_bytes(text, 1, one);
  const std::string path = (temporary_folder() / name).string();
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

DeviceTrace read_good(const std::string& path) {
  std::vector<Problem> problems;
  DeviceTrace trace = read_device_trace({path}, problems);
  EXPECT_TRUE(problems.empty()) << problems.front().message;
  return trace;
}

TEST(XplaneTest, OpsOfATpuAreItsLeaves) {
  const std::string path = written(
      "tpu.xplane.pb",
      {plane("/host:CPU", {line("python", {event(2, 0, 10)})}),
       plane("/device:TPU:0",
             {line("Steps", {event(5, 0, 500)}), line("XLA Modules", {event(2, 0, 500)}),
              line("XLA Ops",
                   {event(1, 0, 300), event(2, 10, 100), event(3, 120, 80), event(4, 300, 50)})})});
  const DeviceTrace trace = read_good(path);
  ASSERT_EQ(trace.ranks.size(), 1U);
  const RankTrace& rank = trace.ranks.front();
  // The loop holds two fusions and is no slice; times are from the line's origin at 1,000 ns.
  ASSERT_EQ(rank.slices.size(), 3U);
  EXPECT_EQ(rank.slices[0].start, 1010);
  EXPECT_EQ(rank.slices[0].end, 1110);
  EXPECT_EQ(rank.slices[0].kind, SliceKind::kMatmul);
  EXPECT_EQ(rank.slices[0].direction, SliceDirection::kForward);
  EXPECT_EQ(rank.slices[0].layer, 3);
  EXPECT_EQ(rank.slices[1].kind, SliceKind::kElementwise);
  EXPECT_EQ(rank.slices[1].direction, SliceDirection::kBackward);
  EXPECT_EQ(rank.slices[1].layer, 12);
  EXPECT_EQ(rank.slices[2].kind, SliceKind::kAllReduce);
  EXPECT_EQ(rank.slices[2].layer, -1);
  ASSERT_EQ(rank.steps.size(), 1U);
  EXPECT_EQ(rank.steps[0].name, "step 12");
  EXPECT_EQ(rank.steps[0].end, 1500);
}

TEST(XplaneTest, KernelsOfAGpuAreThoseOfItsStreams) {
  const std::string path = written(
      "gpu.xplane.pb", {plane("/device:GPU:1", {line("Stream #14(Compute)", {event(6, 5, 20)}),
                                                line("XLA Ops", {event(2, 5, 20)})})});
  const DeviceTrace trace = read_good(path);
  ASSERT_EQ(trace.ranks.size(), 1U);
  ASSERT_EQ(trace.ranks[0].slices.size(), 1U);
  EXPECT_EQ(trace.ranks[0].slices[0].kind, SliceKind::kMatmul);
  EXPECT_EQ(trace.ranks[0].steps[0].name, "all");
}

TEST(XplaneTest, KindsFollowTheCategoryThenTheName) {
  EXPECT_EQ(kind_of_hlo("custom-call", "%splash_attention_fwd.1"), SliceKind::kAttention);
  EXPECT_EQ(kind_of_hlo("all-gather", "%fusion.1"), SliceKind::kAllGather);
  EXPECT_EQ(kind_of_hlo("", "%collective-permute-done.2 = ..."), SliceKind::kSendReceive);
  EXPECT_EQ(kind_of_hlo("input fusion", "%fusion.2"), SliceKind::kReduction);
  // Operands' names say nothing of the op.
  EXPECT_EQ(kind_of_hlo("", "%bitcast.1 = f32[] bitcast(%all-reduce.3)"), SliceKind::kOtherWork);
}

TEST(XplaneTest, RefusesWhatIsNoProfile) {
  std::vector<Problem> problems;
  read_device_trace({written("none.xplane.pb", {plane("/host:CPU", {})})}, problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].message.find("nothing that ran on a chip in its 1 planes"),
            std::string::npos);
  problems.clear();
  const std::string path = (temporary_folder() / "cut.xplane.pb").string();
  std::ofstream(path, std::ios::binary) << "\x0a\x7f half of a plane";
  read_device_trace({path}, problems);
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems[0].message.find("is no xplane.pb"), std::string::npos);
}

}  // namespace
}  // namespace stepsim
