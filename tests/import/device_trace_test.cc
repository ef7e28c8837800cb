// Small Kineto traces made by hand: times, steps, kinds, and the diff of two.

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "import/trace/decimal_time.h"
#include "import/trace/read_trace.h"
#include "import/trace/step_diff.h"
#include "import/trace/step_parts.h"
#include "tests/support/temporary_folder.h"

namespace stepsim {
namespace {

std::string written(const std::string& name, const std::string& text) {
  const std::string path = (temporary_folder() / name).string();
  std::ofstream(path) << text;
  return path;
}

std::string kernel(const std::string& name, const std::string& start, const std::string& duration,
                   int stream = 7, const std::string& more = "") {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "pid": 0, "tid": )" +
         std::to_string(stream) + R"(, "ts": )" + start + R"(, "dur": )" + duration +
         R"(, "args": {"stream": )" + std::to_string(stream) + more + "}}";
}

std::string trace_of(const std::vector<std::string>& events, const std::string& members = "") {
  std::string text = "{" + members + R"("traceEvents": [)";
  for (const std::string& event : events) {
    if (text.back() != '[') text += ",\n";
    text += event;
  }
  return text + "]}";
}

DeviceTrace read_good(const std::vector<std::string>& texts) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    paths.push_back(written("trace." + std::to_string(i) + ".json", texts[i]));
  }
  std::vector<Problem> problems;
  DeviceTrace trace = read_device_trace(paths, problems);
  EXPECT_TRUE(problems.empty()) << problems.front().message;
  return trace;
}

std::string problem_of(const std::string& text) {
  std::vector<Problem> problems;
  read_device_trace({written("bad.json", text)}, problems);
  return problems.empty() ? "" : problems.front().message;
}

StepDiff diff_of(const DeviceTrace& simulated, const DeviceTrace& real) {
  std::vector<Problem> problems;
  StepDiff diff = diff_steps(simulated, real, {}, problems);
  EXPECT_TRUE(problems.empty());
  Duration sum{};
  for (const KindDifference& kind : diff.by_kind) sum += kind.difference();
  EXPECT_EQ(sum, diff.step[0] - diff.step[1]);
  return diff;
}

Duration difference_in(const StepDiff& diff, std::string_view name) {
  for (const KindDifference& kind : diff.by_kind) {
    if (kind.kind == name) return kind.difference();
  }
  return {};
}

constexpr std::int64_t kNanosecond = 1000;

TEST(DecimalTimeTest, KeepsEveryNanosecond) {
  EXPECT_EQ(nanoseconds_in("1712195495505583.037"), 1712195495505583037);
  EXPECT_EQ(nanoseconds_in("5"), 5000);
  EXPECT_EQ(nanoseconds_in("4.928"), 4928);
  EXPECT_EQ(nanoseconds_in("-0.5"), -500);
  EXPECT_EQ(nanoseconds_in("0.0004"), 0);
  EXPECT_EQ(nanoseconds_in("0.0005"), 1);
  EXPECT_EQ(nanoseconds_in("1.5e3"), 1'500'000);
  EXPECT_FALSE(nanoseconds_in("12x"));
  EXPECT_FALSE(nanoseconds_in(""));
  EXPECT_FALSE(nanoseconds_in("99999999999999999999"));
}

TEST(ReadTraceTest, ThreeKernelsAreOneStep) {
  const DeviceTrace trace =
      read_good({trace_of({kernel("sm90_gemm", "10", "5"), kernel("flash_fwd", "15.5", "2"),
                           kernel("ncclDevKernel_AllReduce_Sum", "20", "3", 20)})});
  ASSERT_EQ(trace.ranks.size(), 1U);
  const RankTrace& rank = trace.ranks[0];
  ASSERT_EQ(rank.steps.size(), 1U);
  EXPECT_EQ(rank.steps[0].begin, 10'000);
  EXPECT_EQ(rank.steps[0].end, 23'000);
  const StepParts parts = parts_of(rank, rank.steps[0], false);
  EXPECT_EQ(parts.nanoseconds[std::size_t(SliceKind::kMatmul)], 5'000);
  EXPECT_EQ(parts.nanoseconds[std::size_t(SliceKind::kAttention)], 2'000);
  EXPECT_EQ(parts.nanoseconds[std::size_t(SliceKind::kAllReduce)], 3'000);
  EXPECT_EQ(parts.nanoseconds[std::size_t(SliceKind::kIdle)], 3'000);
}

// The all-reduce runs 0 to 10, the matmul 2 to 6 beside it: 6 are exposed.
TEST(ReadTraceTest, TimeUnderAKernelCountsOnce) {
  const DeviceTrace trace = read_good({trace_of(
      {kernel("ncclKernel_AllReduce_RING_LL", "0", "10", 20), kernel("gemm", "2", "4")})});
  const StepParts parts = parts_of(trace.ranks[0], trace.ranks[0].steps[0], false);
  EXPECT_EQ(parts.nanoseconds[std::size_t(SliceKind::kMatmul)], 4'000);
  EXPECT_EQ(parts.nanoseconds[std::size_t(SliceKind::kAllReduce)], 6'000);
}

// A kernel that was launched in the first step runs in the time of the second.
TEST(ReadTraceTest, KernelsBelongToTheStepOfTheirLaunch) {
  const auto step = [](int number, const std::string& start) {
    return R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#)" +
           std::to_string(number) + R"(", "pid": 1, "tid": 1, "ts": )" + start + R"(, "dur": 100})";
  };
  const auto launch = [](int correlation, const std::string& start) {
    return R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": )" +
           start + R"(, "dur": 1, "args": {"correlation": )" + std::to_string(correlation) + "}}";
  };
  const DeviceTrace trace =
      read_good({trace_of({step(4, "0"), step(5, "100"), launch(1, "90"), launch(2, "120"),
                           kernel("gemm", "110", "5", 7, R"(, "correlation": 1)"),
                           kernel("gemm", "130", "5", 7, R"(, "correlation": 2)")})});
  ASSERT_EQ(trace.ranks[0].steps.size(), 2U);
  EXPECT_EQ(trace.ranks[0].steps[0].begin, 110'000);
  EXPECT_EQ(trace.ranks[0].steps[0].end, 130'000);
  EXPECT_EQ(trace.ranks[0].steps[1].begin, 130'000);
  EXPECT_EQ(trace.ranks[0].steps[1].name, "ProfilerStep#5");
}

TEST(ReadTraceTest, TheRankIsThatOfDistributedInfo) {
  const DeviceTrace trace =
      read_good({trace_of({kernel("gemm", "1", "1")}, R"("distributedInfo": {"rank": 3}, )")});
  EXPECT_EQ(trace.ranks[0].rank, 3U);
}

TEST(ReadTraceTest, NamesTheByteOfABadEvent) {
  const std::string good = kernel("gemm", "1", "1");
  const std::string first = R"({"traceEvents": [)";
  EXPECT_EQ(problem_of(first + R"({"ph": "X", "ts": "soon", "dur": 2}]})"),
            "ts must be microseconds, is soon, in event 1 at byte 17");
  EXPECT_NE(problem_of(first + good + R"(, {"ph": "X", "ts": 1x, "dur": 2}]})")
                .find("in event 2 at byte " + std::to_string(first.size() + good.size() + 2)),
            std::string::npos);
  EXPECT_NE(problem_of(trace_of({R"({"ph": "X", "name": "gemm"})"})).find("needs ts and dur"),
            std::string::npos);
  EXPECT_NE(problem_of(trace_of({R"({"ph" "X"})"})).find("is no JSON"), std::string::npos);
}

// Sums over ranks must fit in 64 bits.
TEST(ReadTraceTest, RefusesTimesPastAllTraces) {
  EXPECT_NE(problem_of(trace_of({kernel("gemm", "0", "2e12")})).find("more than 11 days"),
            std::string::npos);
  EXPECT_EQ(problem_of(trace_of({kernel("gemm", "0", "1"), kernel("gemm", "2e12", "1")})),
            "has a step of more than 11 days");
}

TEST(ReadTraceTest, SaysWhereACutFileEnds) {
  const std::string text = trace_of({kernel("gemm", "1", "1"), kernel("gemm", "3", "1")});
  const std::string cut = text.substr(0, text.size() - 20);
  EXPECT_NE(problem_of(cut).find("ends inside event 2, which begins at byte"), std::string::npos);
  EXPECT_EQ(problem_of(""), "is empty, at byte 0");
  EXPECT_NE(problem_of("[]").find("has no kernels"), std::string::npos);
}

TEST(StepDiffTest, ATraceAgainstItselfIsZero) {
  const DeviceTrace trace =
      read_good({trace_of({kernel("gemm", "0", "5"), kernel("norm", "6", "5"),
                           kernel("ncclDevKernel_AllGather_RING_LL", "4", "9", 20)})});
  const StepDiff diff = diff_of(trace, trace);
  for (const KindDifference& kind : diff.by_kind) EXPECT_EQ(kind.difference(), Duration());
  EXPECT_EQ(diff.matched, 3U);
  EXPECT_EQ(diff.score, 1);
}

// The norm takes 7 us more and what follows is later: all of it is the norm's.
TEST(StepDiffTest, ALongerOpGivesItsDelayToItsKind) {
  const DeviceTrace real = read_good(
      {trace_of({kernel("gemm", "0", "5"), kernel("norm", "6", "5"), kernel("gemm", "11", "5")})});
  const DeviceTrace slow = read_good(
      {trace_of({kernel("gemm", "0", "5"), kernel("norm", "6", "12"), kernel("gemm", "18", "5")})});
  const StepDiff diff = diff_of(slow, real);
  EXPECT_EQ(difference_in(diff, "norm"), Duration(7'000 * kNanosecond));
  EXPECT_EQ(difference_in(diff, "matmul"), Duration());
  EXPECT_EQ(difference_in(diff, "idle"), Duration());
  ASSERT_EQ(diff.ops.size(), 1U);
  EXPECT_EQ(diff.ops[0].difference(), 7'000);
}

TEST(StepDiffTest, AnOpThatIsMissingIsUnmatched) {
  const DeviceTrace all =
      read_good({trace_of({kernel("gemm", "0", "5"), kernel("norm", "5", "5"),
                           kernel("gemm", "10", "5"), kernel("norm", "15", "3")})});
  const DeviceTrace some = read_good(
      {trace_of({kernel("gemm", "0", "5"), kernel("gemm", "5", "5"), kernel("norm", "10", "3")})});
  const StepDiff diff = diff_of(all, some);
  EXPECT_EQ(diff.matched, 3U);
  EXPECT_EQ(diff.unmatched_count[0], 1U);
  EXPECT_EQ(diff.unmatched_count[1], 0U);
  ASSERT_EQ(diff.unmatched.size(), 1U);
  EXPECT_EQ(diff.unmatched[0].name[0], "norm");
  EXPECT_EQ(diff.unmatched[0].nanoseconds[0], 5'000);
}

// Two ranks: rank 1 reaches the all-reduce 4 us later, so rank 0 waits 4 of its 10.
TEST(StepDiffTest, WaitingIsToldApartWhereAllRanksAreThere) {
  const auto rank = [](int number, const std::string& start, const std::string& duration) {
    return trace_of(
        {kernel("gemm", "0", start),
         kernel("ncclDevKernel_AllReduce_RING_LL", start, duration, 20,
                R"(, "Collective name": "allreduce", "In msg nelems": 8, "Out msg nelems": 8, )"
                R"("Group size": 2, "dtype": "Float", "Process Group Ranks": "[0, 1]")")},
        R"("distributedInfo": {"rank": )" + std::to_string(number) + "}, ");
  };
  const DeviceTrace late = read_good({rank(0, "5", "10"), rank(1, "9", "6")});
  ASSERT_TRUE(late.knows_waits);
  EXPECT_EQ(late.ranks[0].slices[1].moving, 9'000);
  EXPECT_EQ(late.ranks[0].collectives[0].bytes, 32);
  const DeviceTrace even = read_good({rank(0, "5", "6"), rank(1, "5", "6")});
  const StepDiff diff = diff_of(late, even);
  // Means of two ranks: 4 us of waiting on one, 4 us more of matmul on the other.
  EXPECT_EQ(difference_in(diff, "waiting"), Duration(2'000 * kNanosecond));
  EXPECT_EQ(difference_in(diff, "matmul"), Duration(2'000 * kNanosecond));
  EXPECT_EQ(difference_in(diff, "all-reduce"), Duration());
  // With one rank nothing is told of the wait.
  const StepDiff alone = diff_of(read_good({rank(0, "5", "10")}), read_good({rank(0, "5", "6")}));
  EXPECT_FALSE(alone.tells_waits);
  EXPECT_EQ(difference_in(alone, "all-reduce (wait + transfer)"), Duration(4'000 * kNanosecond));
}

TEST(SliceKindTest, KnowsTheNamesOfBothVendors) {
  EXPECT_EQ(kind_of_kernel("Cijk_Ailk_Bljk_BBS_BH_MT128x128"), SliceKind::kMatmul);
  EXPECT_EQ(kind_of_kernel("nvjet_hsh_128x256_64x4"), SliceKind::kMatmul);
  EXPECT_EQ(kind_of_kernel("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"),
            SliceKind::kReduceScatter);
  EXPECT_EQ(kind_of_kernel("ncclDevKernel_Generic(ncclDevComm*)"), SliceKind::kCommunication);
  EXPECT_EQ(kind_of_kernel("block forward: attention_norm"), SliceKind::kNorm);
  EXPECT_EQ(kind_of_collective("_allgather_base"), SliceKind::kAllGather);
  EXPECT_EQ(kind_of_collective("all-to-all"), SliceKind::kAllToAll);
}

}  // namespace
}  // namespace stepsim
