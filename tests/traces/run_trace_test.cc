#include "traces/formats/run_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

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
#include "tests/traces/perfetto.pb.h"
#include "traces/formats/chrome_sink.h"
#include "traces/formats/perfetto_sink.h"
#include "traces/formats/trace_counters.h"

namespace stepsim {
namespace {

using nlohmann::json;

struct Written {
  std::string text;
  TraceSummary summary;
};

// Returns what a sink that `make` makes of a file writes.
template <typename Make>
Written written_by(Make make, const HandMadeRun& run, TraceDetail detail) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) /
                                     ("run_trace_test" + std::to_string(getpid()) + ".json");
  Written trace;
  OutputFile out(path.string());
  const std::unique_ptr<TraceSink> sink = make(out);
  trace.summary = write_run_trace(run.graph, run.cluster, run.result, detail, {}, *sink);
  out.commit();
  std::ifstream file(path, std::ios::binary);
  trace.text.assign(std::istreambuf_iterator<char>(file), {});
  std::filesystem::remove(path);
  return trace;
}

Written written(const HandMadeRun& run, TraceDetail detail = TraceDetail::kKernel) {
  const auto chrome = [](OutputFile& out) { return std::make_unique<ChromeSink>(out); };
  return written_by(chrome, run, detail);
}

std::vector<json> events(const HandMadeRun& run, const std::string& phase,
                         TraceDetail detail = TraceDetail::kKernel) {
  const json trace = json::parse(written(run, detail).text);
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
std::vector<std::string> slices_of(const HandMadeRun& run, int process,
                                   TraceDetail detail = TraceDetail::kKernel) {
  std::map<int, std::string> threads;
  for (const json& event : events(run, "M")) {
    if (event["name"] == "thread_name") threads[event["tid"]] = event["args"]["name"];
  }
  std::vector<json> slices = events(run, "X", detail);
  std::ranges::stable_sort(slices, {}, begin_of);
  std::vector<std::string> lines;
  for (const json& slice : slices) {
    if (slice["pid"] != process) continue;
    lines.push_back(threads.at(slice["tid"]) + ": " + slice["name"].get<std::string>() + " " +
                    std::to_string(begin_of(slice)) + "-" + std::to_string(end_of(slice)));
  }
  return lines;
}

TEST(RunTraceTest, NestsKernelsInLayersAndCutsTimesToNanoseconds) {
  EXPECT_EQ(
      slices_of(hand_made_run(), 1),
      (std::vector<std::string>{
          "compute: layer 7: forward 0-1500", "compute: forward 0-750", "compute: forward 750-1500",
          "compute: waits for all-reduce (tp) with rank 1 1500-2000",
          "tp: wait: all-reduce 1500-2000", "compute: waits for all-reduce (tp) 2000-3000",
          "tp: all-reduce 2000-3000",
          "compute: waits for activation of micro-batch 3 to be taken "
          "by rank 2 3000-3500",
          "send: send 3000-3500", "compute: nothing left to run 3500-5001"}));
}

TEST(RunTraceTest, PassesStandAroundTheirLayersAndWaits) {
  HandMadeRun run = hand_made_run();
  run.graph.names.push_back("F 3");
  std::vector<OpLabel>& labels = run.graph.programs[1].labels;
  for (std::size_t op = 1; op < 3; ++op) labels[op].pass = 6;  // forward and loss
  run.result.timelines[2].ops[1].ended = picoseconds(4'000'000);
  std::vector<TimelineWait>& waits = run.result.timelines[2].waits;
  waits.insert(waits.begin() + 2,
               {picoseconds(4'000'000), picoseconds(5'000'000), WaitCause::kPeers, 0, 0, {}});
  run.result.timelines[2].ops[2].ended = picoseconds(5'000'600);
  run.result.timelines[2].ops.pop_back();
  const auto compute_slices = [&](TraceDetail detail) {
    std::vector<std::string> lines = slices_of(run, 3, detail);
    std::erase_if(lines, [](const std::string& line) { return !line.starts_with("compute:"); });
    lines.erase(lines.begin(), lines.begin() + 2);  // the wait for the receive
    lines.pop_back();                               // nothing left to run
    return lines;
  };
  const std::string wait = "compute: waits for activation of micro-batch 3 from rank 0 4000-5000";
  EXPECT_EQ(compute_slices(TraceDetail::kPass),
            (std::vector<std::string>{"compute: F 3 3500-5000", wait}));
  EXPECT_EQ(compute_slices(TraceDetail::kLayer),
            (std::vector<std::string>{"compute: F 3 3500-5000",
                                      "compute: layer 8: forward 3500-4000", wait}));
  EXPECT_EQ(
      compute_slices(TraceDetail::kKernel),
      (std::vector<std::string>{"compute: F 3 3500-5000", "compute: layer 8: forward 3500-4000",
                                "compute: forward 3500-3750", "compute: forward 3750-4000", wait}));
}

// Slices and instants of a compute lane say exactly how long it computed and waited, however short.
TEST(RunTraceTest, ComputeAndIdleTimesAddUpToTheRun) {
  const HandMadeRun run = hand_made_run();
  for (const TraceDetail detail : {TraceDetail::kPass, TraceDetail::kLayer, TraceDetail::kKernel}) {
    std::map<int, std::int64_t> sums;
    for (const char* phase : {"X", "i"}) {
      for (const json& event : events(run, phase, detail)) {
        for (const char* key : {"compute_ps", "idle_ps"}) {
          if (event["args"].contains(key)) {
            sums[event["pid"].get<int>()] += event["args"][key].get<std::int64_t>();
          }
        }
      }
    }
    EXPECT_EQ(sums, (std::map<int, std::int64_t>{{1, 5'001'000}, {2, 5'001'000}, {3, 5'001'000}}))
        << name_of(detail);
  }
}

TEST(RunTraceTest, WaitsSayWhatTheBreakdownCountsThemAs) {
  std::map<std::string, std::string> parts;
  for (const json& slice : events(hand_made_run(), "X")) {
    if (slice["cat"] == "idle") parts[slice["name"]] = slice["args"]["counts_as"];
  }
  EXPECT_EQ(parts,
            (std::map<std::string, std::string>{
                {"waits for all-reduce (tp) with rank 1", "idle"},
                {"waits for all-reduce (tp)", "exposed tp"},
                {"waits for activation of micro-batch 3 to be taken by rank 2", "exposed pp"},
                {"waits for activation of micro-batch 3 from rank 0", "exposed pp"},
                {"nothing left to run", "bubble"}}));
}

TEST(RunTraceTest, WritesTimesAsExactDecimals) {
  const std::string text = written(hand_made_run()).text;
  EXPECT_NE(text.find(R"("ts":1.500,"dur":0.500)"), std::string::npos);
  // A day is 86,400,000,000 us; the last nanosecond of it must not be lost in a double.
  HandMadeRun run = hand_made_run();
  run.result.timelines[0].ops[2].ended = picoseconds(86'400'000'000'001'000);
  EXPECT_NE(written(run).text.find(R"("ts":3.000,"dur":86399999997.001)"), std::string::npos)
      << "86,400,000,000,001 ns - 3,000 ns";
}

TEST(RunTraceTest, AMemberThatComesLastDoesNotWait) {
  std::vector<std::string> slices = slices_of(hand_made_run(), 2);
  std::erase_if(slices, [](const std::string& line) { return line.starts_with("compute"); });
  EXPECT_EQ(slices, (std::vector<std::string>{"tp: all-reduce 2000-3000", "send: send 3000-3000"}));
}

TEST(RunTraceTest, OfInstantsInOneNanosecondAllButOneStandInLanesOfTheirOwn) {
  HandMadeRun run = hand_made_run();
  Program& last = run.graph.programs[1];
  last.streams = {{"receive", false, 0, 3}, {"compute", true, 3, 1}};
  for (std::size_t op = 1; op < 3; ++op) last.ops[op] = last.ops[0];
  std::vector<TimelineOp>& ops = run.result.timelines[2].ops;
  for (std::size_t i = 1; i < 3; ++i) {
    ops[i].started = ops[i].moving = ops[i].ended = picoseconds(4'000'000 + 100 * std::int64_t(i));
  }
  std::vector<std::string> slices = slices_of(run, 3);
  std::erase_if(slices, [](const std::string& line) { return line.starts_with("compute"); });
  EXPECT_EQ(slices, (std::vector<std::string>{
                        "receive: wait: receive 0-3000", "receive: receive 3000-3500",
                        "receive: forward 4000-4000", "receive (instants): loss 4000-4000"}));
}

TEST(RunTraceTest, AWaitBehindAnInstantBeginsANanosecondLater) {
  HandMadeRun run = hand_made_run();
  Program& last = run.graph.programs[1];
  last.streams = {{"receive", false, 0, 2}, {"compute", true, 2, 2}};
  last.ops[1] = last.ops[0];
  std::vector<TimelineOp>& ops = run.result.timelines[2].ops;
  ops[0].started = ops[0].moving = ops[0].ended = picoseconds(1'000'000);
  ops[1].started = picoseconds(1'000'000);
  ops[1].moving = ops[1].ended = picoseconds(3'000'000);
  std::vector<std::string> slices = slices_of(run, 3);
  std::erase_if(slices, [](const std::string& line) { return line.starts_with("compute"); });
  EXPECT_EQ(
      std::vector(slices.begin(), slices.begin() + 3),
      (std::vector<std::string>{"receive: receive 1000-1000", "receive: wait: forward 1001-3000",
                                "receive: forward 3000-3000"}));
}

TEST(RunTraceTest, SlicesOfALaneTouchOrLieInEachOther) {
  std::map<std::pair<int, int>, std::vector<json>> lanes;
  for (const json& slice : events(hand_made_run(), "X")) {
    lanes[{slice["pid"], slice["tid"]}].push_back(slice);
  }
  for (const auto& [lane, slices] : lanes) {
    std::vector<std::int64_t> open;  // ends
    for (const json& slice : slices) {
      while (!open.empty() && open.back() <= begin_of(slice)) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(end_of(slice), open.back()) << slice;
      }
      open.push_back(end_of(slice));
    }
  }
}

TEST(RunTraceTest, CountsWhatItWrites) {
  const HandMadeRun run = hand_made_run();
  const TraceSummary summary = written(run).summary;
  EXPECT_EQ(summary.slices, 25U) << "7 of communication; 3, 3 and 3 of compute; 4, 2 and 3 waits";
  EXPECT_EQ(summary.instants, 4U) << "two short waits, two short ops";
  EXPECT_EQ(summary.instants, events(run, "i").size());
  EXPECT_EQ(summary.slices, events(run, "X").size());
  EXPECT_EQ(summary.arrows, 3U) << "a message, a collective, and the compute that waited";
  EXPECT_EQ(summary.arrows, events(run, "s").size());
  EXPECT_EQ(summary.counter_samples, 26U)
      << "6 of memory, 6 of micro-batches, 8 of links, 6 of their kind";
  EXPECT_EQ(summary.counter_samples, events(run, "C").size());
}

// Returns the name of the innermost slice of (pid, tid) that contains `at`.
std::string slice_around(const HandMadeRun& run, const json& arrow_end) {
  const std::int64_t at = nanoseconds(arrow_end["ts"]);
  std::string found;
  for (const json& slice : events(run, "X")) {
    if (slice["pid"] != arrow_end["pid"] || slice["tid"] != arrow_end["tid"]) continue;
    const bool instant = begin_of(slice) == end_of(slice) && at == begin_of(slice);
    if (instant || (at >= begin_of(slice) && at < end_of(slice))) {
      found = slice["name"].get<std::string>() + " of process " + slice["pid"].dump();
    }
  }
  return found;
}

TEST(RunTraceTest, ArrowsBindToTheSlicesInWhichDataMoved) {
  const HandMadeRun run = hand_made_run();
  std::map<int, json> tails;
  for (const json& tail : events(run, "s")) tails[tail["id"].get<int>()] = tail;
  std::vector<std::string> arrows;
  for (const json& head : events(run, "f")) {
    const json& tail = tails.at(head["id"].get<int>());
    EXPECT_EQ(tail["cat"], head["cat"]);
    EXPECT_EQ(tail["name"], head["name"]);
    EXPECT_EQ(head["bp"], "e");
    EXPECT_LE(nanoseconds(tail["ts"]), nanoseconds(head["ts"]));
    arrows.push_back(head["name"].get<std::string>() + ": " + slice_around(run, tail) + " > " +
                     slice_around(run, head));
  }
  std::ranges::sort(arrows);
  EXPECT_EQ(arrows, (std::vector<std::string>{
                        "collective: all-reduce of process 2 > all-reduce of process 1",
                        "message: send of process 1 > receive of process 3",
                        "release: receive of process 3 > forward of process 3"}));
}

TEST(RunTraceTest, ArrowsBindToMessagesThatTakeNoTime) {
  HandMadeRun run = hand_made_run();
  // A free message: sent and received at 3,000,000 ps, the receiver having waited since 0.
  run.result.timelines[0].ops[2].ended = picoseconds(3'000'000);
  run.result.timelines[2].ops[0].ended = picoseconds(3'000'000);
  std::map<std::string, std::string> slices;
  for (const char* phase : {"s", "f"}) {
    for (const json& end : events(run, phase)) {
      if (end["name"] == "message") slices[phase] = slice_around(run, end);
    }
  }
  EXPECT_EQ(slices["s"], "send of process 1");
  EXPECT_EQ(slices["f"], "receive of process 3");
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

TEST(RunTraceTest, MemoryCountersShowTheTotalAndWhatChanged) {
  EXPECT_EQ(samples_of(hand_made_run(), 1),
            (std::vector<std::string>{"memory: total 300 @ 0", "memory: parameters 300 @ 0",
                                      "memory: total 350 @ 1500", "memory: activations 50 @ 1500",
                                      "memory: total 300 @ 3500", "memory: activations 0 @ 3500",
                                      "micro-batches in flight 1 @ 0",
                                      "micro-batches in flight 0 @ 1500"}));
}

// Those of single links.
std::vector<std::string> samples_of_links(const HandMadeRun& run) {
  std::vector<std::string> lines = samples_of(run, 5);
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("all "); });
  return lines;
}

// Of the links from chips to the switch, 0 and 6 are recorded: 2,000 bytes a bin are 100 %.
TEST(RunTraceTest, KindsOfLinksHaveOneCounter) {
  std::vector<std::string> lines = samples_of(hand_made_run(), 5);
  std::erase_if(lines, [](const std::string& line) { return !line.starts_with("all "); });
  const std::string name = "all node*.gpu* > node*.nvswitch ";
  EXPECT_EQ(lines,
            (std::vector<std::string>{name + "25 @ 0", name + "75 @ 2000", name + "50 @ 3000",
                                      name + "25 @ 4000", name + "50 @ 5000", name + "0 @ 5001"}));
}

TEST(RunTraceTest, LinkCountersArePercentOfTheBandwidthOfEachBin) {
  // Bins are 1 us, 1,000 bytes of a 1 GB/s link; the last one is cut to 1 ns: 1 byte.
  const std::string to_switch = ">node0.nvswitch ";
  EXPECT_EQ(samples_of_links(hand_made_run()),
            (std::vector<std::string>{
                "node0.gpu0" + to_switch + "0 @ 0", "node0.gpu0" + to_switch + "100 @ 2000",
                "node0.gpu0" + to_switch + "50 @ 3000", "node0.gpu0" + to_switch + "0 @ 4000",
                "node0.gpu0" + to_switch + "100 @ 5000", "node0.gpu0" + to_switch + "0 @ 5001",
                "node0.gpu3" + to_switch + "50 @ 0", "node0.gpu3" + to_switch + "0 @ 5000"}));
}

TEST(RunTraceTest, LinkCountersHaveAtMostTwoThousandBins) {
  HandMadeRun run = hand_made_run();
  // 2,001 bins that alternate between full and empty: merged by two they are half full.
  run.result.bin_width = Duration(1000);
  run.result.end = picoseconds(2'001'000);
  run.result.link_series = {{LinkId(0), std::vector<double>(2001, 0)}};
  for (std::size_t i = 0; i < 2001; i += 2) run.result.link_series[0].bytes[i] = 1;
  EXPECT_EQ(samples_of_links(run),
            (std::vector<std::string>{"node0.gpu0>node0.nvswitch 50 @ 0",
                                      "node0.gpu0>node0.nvswitch 100 @ 2000",
                                      "node0.gpu0>node0.nvswitch 0 @ 2001"}));
}

TEST(RunTraceTest, TracesLinksOfRecordedChipsAndTheBusiest) {
  HandMadeRun run = hand_made_run();
  // 6 leads from the chip of rank 3, which is not recorded; 7 carried nothing.
  EXPECT_EQ(traced_links(run.graph, run.cluster, run.result),
            (std::vector<LinkId>{LinkId(0), LinkId(6)}));
  run.result.links[6].bytes = 0;
  EXPECT_EQ(traced_links(run.graph, run.cluster, run.result), (std::vector<LinkId>{LinkId(0)}));
}

TEST(RunTraceTest, BusiestLinksAreSortedWithTiesById) {
  const auto links = busiest_links(hand_made_run().result, 10);
  ASSERT_EQ(links.size(), 3U) << "those that carried anything";
  EXPECT_EQ(links[0].link, LinkId(0));
  EXPECT_EQ(links[1].link, LinkId(6));
  EXPECT_EQ(links[2].link, LinkId(1));
  EXPECT_EQ(busiest_links(hand_made_run().result, 1).size(), 1U);
}

TEST(RunTraceTest, NamesRanksAndLanesAndSortsThem) {
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

TEST(RunTraceTest, ThreadNumbersAreUniqueInTheWholeTrace) {
  std::set<int> threads;
  std::size_t names = 0;
  for (const json& event : events(hand_made_run(), "M")) {
    if (event["name"] != "thread_name") continue;
    threads.insert(event["tid"].get<int>());
    ++names;
  }
  EXPECT_EQ(threads.size(), names);
  EXPECT_EQ(names, 3U + 3 + 2) << "one a stream";
}

json arguments(const HandMadeRun& run, int process, const std::string& name) {
  for (const json& slice : events(run, "X")) {
    if (slice["pid"] == process && slice["name"] == name) return slice["args"];
  }
  return {};
}

TEST(RunTraceTest, ArgumentsSayWhatAnOpDid) {
  const HandMadeRun run = hand_made_run();
  EXPECT_EQ(arguments(run, 1, "layer 7: forward"), json({{"step", 0},
                                                         {"microbatch", 3},
                                                         {"layer", 7},
                                                         {"kernels", 2},
                                                         {"flops", 600.0},
                                                         {"memory_bytes", 60}}));
  // Half of 1,500,700 ps, 300 FLOP at 50 GFLOP/s: 300 / 37,517.5 of the peak.
  EXPECT_EQ(arguments(run, 1, "forward"), json({{"step", 0},
                                                {"compute_ps", 750'350},
                                                {"flops", 300.0},
                                                {"memory_bytes", 30},
                                                {"bound", "compute"},
                                                {"percent_of_peak", 0.8}}));
  EXPECT_EQ(arguments(run, 1, "all-reduce"), json({{"step", 0},
                                                   {"microbatch", 3},
                                                   {"layer", 7},
                                                   {"op", "all-reduce"},
                                                   {"bytes", 4096},
                                                   {"algorithm", "ring"},
                                                   {"ranks", 2},
                                                   {"communicator", "tp"},
                                                   {"limited_by", "node0.gpu0>node0.nvswitch"},
                                                   {"algbw_GB_per_s", 4096 / 999.001e-9 / 1e9},
                                                   {"busbw_GB_per_s", 4096 / 999.001e-9 / 1e9},
                                                   {"waited_us", 0.5}}))
      << "2 (n-1)/n = 1";
  EXPECT_EQ(arguments(run, 1, "send"),
            json({{"step", 0},
                  {"microbatch", 3},
                  {"messages", {"send activation of micro-batch 3 to rank 2"}},
                  {"bytes", 500}}));
  EXPECT_EQ(arguments(run, 3, "receive")["messages"][0],
            "receive activation of micro-batch 3 from rank 0");
}

perfetto::Trace uncompressed(const std::string& text) {
  perfetto::Trace trace;
  perfetto::Trace packets;
  EXPECT_TRUE(trace.ParseFromString(text));
  for (const perfetto::TracePacket& packet : trace.packet()) {
    const std::string& bytes = packet.compressed_packets();
    std::string all(1 << 20, '\0');
    uLongf size = all.size();
    EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(all.data()), &size,
                         reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()),
              Z_OK);
    EXPECT_TRUE(packets.MergeFromString(all.substr(0, size)));
  }
  return packets;
}

// Perfetto's format says the same as Chrome's: slices by track with begin, end, name, category and
// arguments, and what arrows lead to.
TEST(RunTraceTest, PerfettosFormatSaysTheSame) {
  const HandMadeRun run = hand_made_run();
  const Written binary = written_by(perfetto_sink, run, TraceDetail::kKernel);
  EXPECT_EQ(binary.summary, written(run).summary);
  const perfetto::Trace trace = uncompressed(binary.text);
  std::map<std::uint64_t, std::string> names, categories, threads;
  std::map<std::uint64_t, std::vector<std::pair<std::string, std::uint64_t>>> open;  // by track
  std::multiset<std::string> found;
  std::size_t heads = 0;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    for (const auto& name : packet.interned_data().event_names()) names[name.iid()] = name.name();
    for (const auto& name : packet.interned_data().event_categories()) {
      categories[name.iid()] = name.name();
    }
    const perfetto::TrackDescriptor& track = packet.track_descriptor();
    if (track.has_thread()) {
      threads[track.uuid()] =
          std::to_string(track.thread().pid()) + " " + track.thread().thread_name();
    }
    const perfetto::TrackEvent& event = packet.track_event();
    heads += static_cast<std::size_t>(event.terminating_flow_ids_size());
    if (event.type() == perfetto::TrackEvent::TYPE_SLICE_BEGIN) {
      open[event.track_uuid()].emplace_back(threads.at(event.track_uuid()) + ": " +
                                                names.at(event.name_iid()) + " (" +
                                                categories.at(event.category_iids(0)) + ")",
                                            packet.timestamp());
    } else if (event.type() == perfetto::TrackEvent::TYPE_SLICE_END) {
      const auto [text, begin] = open.at(event.track_uuid()).back();
      open.at(event.track_uuid()).pop_back();
      found.insert(text + " " + std::to_string(begin) + "-" + std::to_string(packet.timestamp()));
    }
  }
  std::map<int, std::string> lanes;
  for (const json& event : events(run, "M")) {
    if (event["name"] == "thread_name") lanes[event["tid"]] = event["args"]["name"];
  }
  std::multiset<std::string> expected;
  for (const json& slice : events(run, "X")) {
    expected.insert(slice["pid"].dump() + " " + lanes.at(slice["tid"]) + ": " +
                    slice["name"].get<std::string>() + " (" + slice["cat"].get<std::string>() +
                    ") " + std::to_string(begin_of(slice)) + "-" + std::to_string(end_of(slice)));
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(heads, 3U);
}

TEST(RunTraceTest, IsTheSameTwice) {
  EXPECT_EQ(written(hand_made_run()).text, written(hand_made_run()).text);
}

TEST(RunTraceTest, RefusesAStreamThatDoesTwoThingsAtOnce) {
  HandMadeRun run = hand_made_run();
  run.result.timelines[2].ops[2].started = picoseconds(4'999'000);  // before `forward` ends
  EXPECT_THROW(written(run), std::logic_error);
}

TEST(RunTraceTest, ARunWithoutRecordedRanksIsAValidTrace) {
  HandMadeRun run = hand_made_run();
  run.result.timelines.clear();
  run.result.recorded.clear();
  run.result.flows.clear();
  run.result.link_series.clear();
  EXPECT_TRUE(json::parse(written(run).text)["traceEvents"].empty());
}

}  // namespace
}  // namespace stepsim
