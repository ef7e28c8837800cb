#include "traces/chrome_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>

#include "tests/support/hand_made_run.h"

namespace stepsim {
namespace {

using nlohmann::json;

struct Written {
  std::string text;
  TraceSummary summary;
};

Written written(const HandMadeRun& run) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) /
                                     ("chrome_trace_test" + std::to_string(getpid()) + ".json");
  Written trace;
  OutputFile out(path.string());
  trace.summary = write_chrome_trace(run.graph, run.cluster, run.result, out);
  out.commit();
  std::ifstream file(path);
  trace.text.assign(std::istreambuf_iterator<char>(file), {});
  std::filesystem::remove(path);
  return trace;
}

std::vector<json> events(const HandMadeRun& run, const std::string& phase) {
  const json trace = json::parse(written(run).text);
  std::vector<json> chosen;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) chosen.push_back(event);
  }
  return chosen;
}

// Returns a time of the trace in whole nanoseconds. The trace has microseconds with three decimals,
// below 10^6, so the double is close enough to be rounded back.
std::int64_t nanoseconds(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

std::int64_t begin_of(const json& slice) {
  return nanoseconds(slice["ts"]);
}
std::int64_t end_of(const json& slice) {
  return begin_of(slice) + nanoseconds(slice["dur"]);
}

// "thread: name begin-end" in nanoseconds, of one process, in order of begin.
std::vector<std::string> slices_of(const HandMadeRun& run, int process) {
  std::map<int, std::string> threads;
  for (const json& event : events(run, "M")) {
    if (event["name"] == "thread_name") threads[event["tid"]] = event["args"]["name"];
  }
  std::vector<json> slices = events(run, "X");
  std::ranges::stable_sort(slices, {}, begin_of);
  std::vector<std::string> lines;
  for (const json& slice : slices) {
    if (slice["pid"] != process) continue;
    lines.push_back(threads.at(slice["tid"]) + ": " + slice["name"].get<std::string>() + " " +
                    std::to_string(begin_of(slice)) + "-" + std::to_string(end_of(slice)));
  }
  return lines;
}

TEST(ChromeTraceTest, CutsStartAndEndToNanosecondsSoThatTouchingSlicesTouch) {
  EXPECT_EQ(slices_of(hand_made_run(), 1),
            (std::vector<std::string>{"compute: forward 0-1500", "tp: wait: all-reduce 1500-2000",
                                      "tp: all-reduce 2000-3000", "send: send 3000-3500"}));
}

TEST(ChromeTraceTest, WritesTimesAsExactDecimals) {
  const std::string text = written(hand_made_run()).text;
  EXPECT_NE(text.find(R"("ts":1.500,"dur":0.500)"), std::string::npos);
  // A day is 86,400,000,000 us; the last nanosecond of it must not be lost in a double.
  HandMadeRun run = hand_made_run();
  run.result.timelines[0].ops[2].ended = picoseconds(86'400'000'000'001'000);
  EXPECT_NE(written(run).text.find(R"("ts":3.000,"dur":86399999997.001)"), std::string::npos)
      << "86,400,000,000,001 ns - 3,000 ns";
}

TEST(ChromeTraceTest, AMemberThatComesLastDoesNotWait) {
  EXPECT_EQ(slices_of(hand_made_run(), 2),
            (std::vector<std::string>{"compute: forward 0-2000", "tp: all-reduce 2000-3000",
                                      "send: send 3000-3000"}));
}

TEST(ChromeTraceTest, OfInstantsInOneNanosecondAllButOneStandInLanesOfTheirOwn) {
  EXPECT_EQ(slices_of(hand_made_run(), 3),
            (std::vector<std::string>{"receive: wait: receive 0-3000", "receive: receive 3000-3500",
                                      "compute: forward 3500-5000", "compute: loss 5000-5000",
                                      "compute (instants): optimizer \"fused\" 5000-5000"}));
  std::set<int> threads;
  for (const json& slice : events(hand_made_run(), "X")) {
    if (slice["pid"] == 3 && slice["dur"] == 0.0) threads.insert(slice["tid"].get<int>());
  }
  EXPECT_EQ(threads.size(), 2U);
}

// The slice that lasts keeps the lane of the stream. The others get extra lanes.
TEST(ChromeTraceTest, InstantsInFrontOfASliceThatLastsMakeRoomForIt) {
  HandMadeRun run = hand_made_run();
  std::vector<TimelineOp>& ops = run.result.timelines[2].ops;
  ASSERT_EQ(ops.size(), 4U);
  for (std::size_t i = 1; i < 3; ++i) {
    ops[i].started = ops[i].moving = ops[i].ended = picoseconds(3'500'000);
  }
  ops[3].started = ops[3].moving = picoseconds(3'500'000);
  EXPECT_EQ(slices_of(run, 3),
            (std::vector<std::string>{"receive: wait: receive 0-3000", "receive: receive 3000-3500",
                                      "compute (instants): forward 3500-3500",
                                      "compute (instants 2): loss 3500-3500",
                                      "compute: optimizer \"fused\" 3500-5000"}));
}

TEST(ChromeTraceTest, AWaitBehindAnInstantBeginsANanosecondLater) {
  HandMadeRun run = hand_made_run();
  Program& last = run.graph.programs[1];
  last.streams = {{"receive", false, 0, 2}, {"compute", true, 2, 2}};
  last.ops[1] = last.ops[0];
  std::vector<TimelineOp>& ops = run.result.timelines[2].ops;
  ops[0].started = ops[0].moving = ops[0].ended = picoseconds(1'000'000);
  ops[1].started = picoseconds(1'000'000);
  ops[1].moving = ops[1].ended = picoseconds(3'000'000);
  const std::vector<std::string> slices = slices_of(run, 3);
  EXPECT_EQ(
      std::vector(slices.begin(), slices.begin() + 3),
      (std::vector<std::string>{"receive: receive 1000-1000", "receive: wait: forward 1001-3000",
                                "receive: forward 3000-3000"}));
}

TEST(ChromeTraceTest, SlicesOfALaneNeverOverlap) {
  std::map<std::pair<int, int>, std::vector<json>> lanes;
  for (const json& slice : events(hand_made_run(), "X")) {
    lanes[{slice["pid"], slice["tid"]}].push_back(slice);
  }
  for (auto& [lane, slices] : lanes) {
    std::ranges::sort(slices, {}, begin_of);
    for (std::size_t i = 1; i < slices.size(); ++i) {
      EXPECT_GE(begin_of(slices[i]), end_of(slices[i - 1]));
      EXPECT_GT(begin_of(slices[i]), begin_of(slices[i - 1])) << "an arrow could not tell them";
    }
  }
}

TEST(ChromeTraceTest, DurationsAddUpToThoseOfTheTimelines) {
  const HandMadeRun run = hand_made_run();
  std::int64_t expected = 0;
  for (const Timeline& timeline : run.result.timelines) {
    for (const TimelineOp& entry : timeline.ops) {
      expected += entry.ended.since_start.count() / 1000 - entry.started.since_start.count() / 1000;
    }
  }
  std::int64_t sum = 0;
  for (const json& slice : events(run, "X")) sum += nanoseconds(slice["dur"]);
  EXPECT_EQ(sum, expected);
  // Rank 0: 3,500; rank 1: 3,000; rank 2: 3,500 + 1,500.
  EXPECT_EQ(sum, 11'500);
}

TEST(ChromeTraceTest, CountsWhatItWrites) {
  const HandMadeRun run = hand_made_run();
  const TraceSummary summary = written(run).summary;
  EXPECT_EQ(summary.slices, 12U) << "10 ops, two of which wait";
  EXPECT_EQ(summary.slices, events(run, "X").size());
  EXPECT_EQ(summary.arrows, 2U);
  EXPECT_EQ(summary.arrows, events(run, "s").size());
  EXPECT_EQ(summary.counter_samples, 14U) << "6 of memory, 8 of links";
  EXPECT_EQ(summary.counter_samples, events(run, "C").size());
}

// Returns the name of the slice of (pid, tid) that contains `at`.
std::string slice_around(const HandMadeRun& run, const json& arrow_end) {
  const std::int64_t at = nanoseconds(arrow_end["ts"]);
  std::string found;
  for (const json& slice : events(run, "X")) {
    if (slice["pid"] != arrow_end["pid"] || slice["tid"] != arrow_end["tid"]) continue;
    const bool instant = begin_of(slice) == end_of(slice) && at == begin_of(slice);
    if (instant || (at >= begin_of(slice) && at < end_of(slice))) {
      found += slice["name"].get<std::string>() + " of process " + slice["pid"].dump();
    }
  }
  return found;
}

TEST(ChromeTraceTest, ArrowsBindToTheSlicesInWhichDataMoved) {
  const HandMadeRun run = hand_made_run();
  const std::vector<json> tails = events(run, "s");
  const std::vector<json> heads = events(run, "f");
  ASSERT_EQ(tails.size(), 2U);
  ASSERT_EQ(heads.size(), 2U);
  for (std::size_t i = 0; i < tails.size(); ++i) {
    EXPECT_EQ(tails[i]["id"], heads[i]["id"]);
    EXPECT_EQ(tails[i]["cat"], heads[i]["cat"]);
    EXPECT_EQ(tails[i]["name"], heads[i]["name"]);
    EXPECT_EQ(heads[i]["bp"], "e");
    EXPECT_LE(nanoseconds(tails[i]["ts"]), nanoseconds(heads[i]["ts"]));
  }
  EXPECT_NE(tails[0]["id"], tails[1]["id"]);
  EXPECT_EQ(slice_around(run, tails[0]), "send of process 1");
  EXPECT_EQ(slice_around(run, heads[0]), "receive of process 3");
  EXPECT_EQ(slice_around(run, tails[1]), "all-reduce of process 2");
  EXPECT_EQ(slice_around(run, heads[1]), "all-reduce of process 1");
}

TEST(ChromeTraceTest, ArrowsBindToMessagesThatTakeNoTime) {
  HandMadeRun run = hand_made_run();
  // A free message: sent and received at 3,000,000 ps, the receiver having waited since 0.
  run.result.timelines[0].ops[2].ended = picoseconds(3'000'000);
  run.result.timelines[2].ops[0].ended = picoseconds(3'000'000);
  EXPECT_EQ(slice_around(run, events(run, "s")[0]), "send of process 1");
  EXPECT_EQ(slice_around(run, events(run, "f")[0]), "receive of process 3");
}

// "name value @ ns" of every sample of one process.
std::vector<std::string> samples_of(const HandMadeRun& run, int process) {
  std::vector<std::string> lines;
  for (const json& event : events(run, "C")) {
    if (event["pid"] != process) continue;
    lines.push_back(event["name"].get<std::string>() + " " + event["args"].begin()->dump() + " @ " +
                    std::to_string(begin_of(event)));
  }
  return lines;
}

TEST(ChromeTraceTest, MemoryCountersShowTheTotalAndWhatChanged) {
  EXPECT_EQ(samples_of(hand_made_run(), 1),
            (std::vector<std::string>{"memory: total 300 @ 0", "memory: parameters 300 @ 0",
                                      "memory: total 350 @ 1500", "memory: activations 50 @ 1500",
                                      "memory: total 300 @ 3500", "memory: activations 0 @ 3500"}));
}

TEST(ChromeTraceTest, LinkCountersArePercentOfTheBandwidthOfEachBin) {
  // Bins are 1 us, 1,000 bytes of a 1 GB/s link; the last one is cut to 1 ns: 1 byte.
  const std::string to_switch = ">node0.nvswitch ";
  EXPECT_EQ(samples_of(hand_made_run(), 5),
            (std::vector<std::string>{
                "node0.gpu0" + to_switch + "0.0 @ 0", "node0.gpu0" + to_switch + "100.0 @ 2000",
                "node0.gpu0" + to_switch + "50.0 @ 3000", "node0.gpu0" + to_switch + "0.0 @ 4000",
                "node0.gpu0" + to_switch + "100.0 @ 5000", "node0.gpu0" + to_switch + "0.0 @ 5001",
                "node0.gpu3" + to_switch + "50.0 @ 0", "node0.gpu3" + to_switch + "0.0 @ 5000"}));
}

TEST(ChromeTraceTest, LinkCountersHaveAtMostTwoThousandBins) {
  HandMadeRun run = hand_made_run();
  // 2,001 bins that alternate between full and empty: merged by two they are half full.
  run.result.bin_width = Duration(1000);
  run.result.end = picoseconds(2'001'000);
  run.result.link_series = {{LinkId(0), std::vector<double>(2001, 0)}};
  for (std::size_t i = 0; i < 2001; i += 2) run.result.link_series[0].bytes[i] = 1;
  EXPECT_EQ(samples_of(run, 5), (std::vector<std::string>{"node0.gpu0>node0.nvswitch 50.0 @ 0",
                                                          "node0.gpu0>node0.nvswitch 100.0 @ 2000",
                                                          "node0.gpu0>node0.nvswitch 0.0 @ 2001"}));
}

TEST(ChromeTraceTest, TracesLinksOfRecordedChipsAndTheBusiest) {
  HandMadeRun run = hand_made_run();
  // 6 leads from the chip of rank 3, which is not recorded; 7 carried nothing.
  EXPECT_EQ(traced_links(run.graph, run.cluster, run.result),
            (std::vector<LinkId>{LinkId(0), LinkId(6)}));
  run.result.links[6].bytes = 0;
  EXPECT_EQ(traced_links(run.graph, run.cluster, run.result), (std::vector<LinkId>{LinkId(0)}));
}

TEST(ChromeTraceTest, BusiestLinksAreSortedWithTiesById) {
  const auto links = busiest_links(hand_made_run().result, 10);
  ASSERT_EQ(links.size(), 3U) << "those that carried anything";
  EXPECT_EQ(links[0].link, LinkId(0));
  EXPECT_EQ(links[1].link, LinkId(6));
  EXPECT_EQ(links[2].link, LinkId(1));
  EXPECT_EQ(busiest_links(hand_made_run().result, 1).size(), 1U);
}

TEST(ChromeTraceTest, NamesRanksAndLanesAndSortsThem) {
  std::map<int, std::string> processes;
  std::map<int, int> positions;
  for (const json& event : events(hand_made_run(), "M")) {
    if (event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
    if (event["name"] == "process_sort_index") {
      positions[event["pid"]] = event["args"]["sort_index"];
    }
  }
  EXPECT_EQ(processes, (std::map<int, std::string>{{1, "rank 0 (stage 0, tp 0, dp 0)"},
                                                   {2, "rank 1 (stage 0, tp 1, dp 0)"},
                                                   {3, "rank 2 (stage 1, tp 0, dp 0)"},
                                                   {5, "link utilization"}}));
  EXPECT_EQ(positions, (std::map<int, int>{{1, 0}, {2, 1}, {3, 2}, {5, 3}}));
}

TEST(ChromeTraceTest, ThreadNumbersAreUniqueInTheWholeTrace) {
  std::set<int> threads;
  std::size_t names = 0;
  for (const json& event : events(hand_made_run(), "M")) {
    if (event["name"] != "thread_name") continue;
    threads.insert(event["tid"].get<int>());
    ++names;
  }
  EXPECT_EQ(threads.size(), names);
  EXPECT_EQ(names, 3U + 3 + 3) << "one a stream, one more for two instants of rank 2 that coincide";
}

json arguments(const HandMadeRun& run, int process, const std::string& name) {
  for (const json& slice : events(run, "X")) {
    if (slice["pid"] == process && slice["name"] == name) return slice["args"];
  }
  return {};
}

TEST(ChromeTraceTest, ArgumentsSayWhatAnOpDid) {
  const HandMadeRun run = hand_made_run();
  EXPECT_EQ(arguments(run, 1, "forward"), json({{"step", 0},
                                                {"microbatch", 3},
                                                {"layer", 7},
                                                {"kernels", 2},
                                                {"flops", 600},
                                                {"memory_bytes", 60}}));
  EXPECT_EQ(arguments(run, 1, "all-reduce"), json({{"step", 0},
                                                   {"microbatch", 3},
                                                   {"layer", 7},
                                                   {"op", "all-reduce"},
                                                   {"bytes", 4096},
                                                   {"algorithm", "ring"},
                                                   {"ranks", 2},
                                                   {"communicator", "tp"},
                                                   {"waited_us", 0.5}}));
  EXPECT_EQ(arguments(run, 1, "send"),
            json({{"step", 0},
                  {"microbatch", 3},
                  {"messages", {"send activation of micro-batch 3 to rank 2"}},
                  {"bytes", 500}}));
  EXPECT_EQ(arguments(run, 3, "receive")["messages"][0],
            "receive activation of micro-batch 3 from rank 0");
}

TEST(ChromeTraceTest, IsTheSameTwice) {
  EXPECT_EQ(written(hand_made_run()).text, written(hand_made_run()).text);
}

TEST(ChromeTraceTest, RefusesAStreamThatDoesTwoThingsAtOnce) {
  HandMadeRun run = hand_made_run();
  run.result.timelines[2].ops[2].started = picoseconds(4'999'000);  // before `forward` ends
  EXPECT_THROW(written(run), std::logic_error);
}

TEST(ChromeTraceTest, ARunWithoutRecordedRanksIsAValidTrace) {
  HandMadeRun run = hand_made_run();
  run.result.timelines.clear();
  run.result.flows.clear();
  run.result.link_series.clear();
  EXPECT_TRUE(json::parse(written(run).text)["traceEvents"].empty());
}

}  // namespace
}  // namespace stepsim
