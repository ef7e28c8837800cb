#include "measured/nccl_log.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace stepsim {
namespace {

// What nccl-tests 2.18 prints on one node of two GPUs.
const std::string kDevices =
    "# nThread 1 nGpus 2 minBytes 8 maxBytes 32 step: 2(factor) warmup iters: 5 iters: 20\n"
    "# Collective test starting: all_reduce_perf\n"
    "#\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid  22112 on     host1 device  0 [0x10] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid  22112 on     host1 device  1 [0x16] NVIDIA H100 80GB HBM3\n"
    "#\n";
const std::string kHeader =
    "#                                                              out-of-place              "
    "         in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    "  algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " (GB/s)  (GB/s)\n";
const std::string kRow =
    "        8   2     float     sum      -1    12.50    0.00    0.00      0    12.34    0.00    "
    "0.00    N/A\n";
const std::string kEnd = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.001\n";

std::string problem_of(const std::string& text) {
  const NcclLog log = read_nccl_log(text);
  return log.problems.empty() ? "" : log.problems[0].field + ": " + log.problems[0].message;
}

TEST(NcclLogTest, ARowHasItsTestDevicesAndBothTimes) {
  const NcclLog log = read_nccl_log(kDevices + kHeader + kRow + kEnd);
  ASSERT_EQ(log.rows.size(), 1U);
  const NcclRow& row = log.rows.front();
  EXPECT_EQ(row.op, "all_reduce");
  EXPECT_EQ(row.hardware, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(row.ranks, 2);
  EXPECT_EQ(row.nodes, 1);
  EXPECT_EQ(row.bytes, 8);
  EXPECT_EQ(row.type, "float");
  EXPECT_EQ(row.out_of_place_us, 12.5);
  EXPECT_EQ(row.in_place_us, 12.34);
  EXPECT_EQ(row.time_us(), 12.5);
  EXPECT_EQ(row.line, 11U);
  EXPECT_TRUE(log.problems.empty());
}

TEST(NcclLogTest, LaunchersPrefixesAreTakenOff) {
  for (const std::string prefix : {"0: ", "[1,0]<stdout>:", "  [1,0]<stdout>: ", "12: "}) {
    std::string text;
    for (const std::string& line : {kHeader.substr(kHeader.find("#       size")), kRow}) {
      text += prefix + line;
    }
    const NcclLog log = read_nccl_log(text);
    ASSERT_EQ(log.rows.size(), 1U) << prefix;
    EXPECT_EQ(log.rows.front().bytes, 8);
  }
}

// The header line shows the prefix: other lines have the same marks with other words and numbers.
TEST(NcclLogTest, AnyPrefixIsTakenOff) {
  const auto row_of = [](const std::string& of_header, const std::string& of_row, std::string row) {
    const std::string header = kHeader.substr(kHeader.find("#       size"));
    return read_nccl_log(of_header + header.substr(0, header.find('\n') + 1) + of_row + row);
  };
  // mpirun --timestamp-output (NVIDIA/nccl#1368), pods, loggers, ranks of torchrun.
  for (const auto& [of_header, of_row] : std::vector<std::pair<std::string, std::string>>{
           {"Thu Jul 18 15:41:59 2024<stdout>:", "Fri Jul 19 00:00:01 2024<stdout>:"},
           {"2024-07-18T15:41:05.123Z ", "2024-07-18T15:41:06.001Z "},
           {"[pod/worker-0/main] ", "[pod/worker-0/main] "},
           {"[rank0]:", "[rank13]:"},
           {" 0: ", "13: "},
           {"gpu-a12 | ", "gpu-a13 | "}}) {
    const NcclLog log = row_of(of_header, of_row, kRow);
    ASSERT_EQ(log.rows.size(), 1U) << of_header;
    EXPECT_EQ(log.rows[0].bytes, 8);
    EXPECT_EQ(log.rows[0].out_of_place_us, 12.5);
  }
  // Each piece of a line got it (NVIDIA/nccl#1453).
  std::string pieces = kRow;
  pieces.replace(pieces.find("-1  "), 2, "-1[0] ");
  const NcclLog log = row_of("[0] ", "[0] ", pieces);
  ASSERT_EQ(log.rows.size(), 1U);
  EXPECT_EQ(log.rows[0].out_of_place_us, 12.5);
}

// -S 1 (NVIDIA/nccl-tests#349): at the end of a row, or in front of it.
TEST(NcclLogTest, ATimeMayStandInARow) {
  std::string header =
      "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong";
  std::string row = kRow;
  row.pop_back();
  EXPECT_EQ(read_nccl_log(header + " timestamp\n" + row + "  2025-10-14 10:11:12\n").rows.size(),
            1U);
  header.insert(2, "timestamp ");
  EXPECT_EQ(read_nccl_log(header + "\n 2025-10-14 10:11:12 " + row + "\n").rows.size(), 1U);
}

// Tests that were built without MPI, started by mpirun (NVIDIA/nccl-tests#107).
TEST(NcclLogTest, TwoRunsThatPrintIntoOneLogAreRefused) {
  const std::string rank0 =
      "#  Rank  0 Pid  1 on hostA device  0 [0x00] Tesla V100\n"
      "#  Rank  0 Pid  2 on hostB device  0 [0x00] Tesla V100\n";
  EXPECT_EQ(problem_of("# Using devices\n# Using devices\n" + rank0 + kHeader + kRow),
            "4: rank 0 is listed twice: two runs that print into one log can't be told apart");
  EXPECT_EQ(problem_of(kDevices + kHeader + kHeader + kRow + kRow),
            "12: follows another header without rows between them: two runs that print into one "
            "log can't be told apart");
  EXPECT_EQ(problem_of("# size count type redop root cputime algbw busbw #wrong\n"),
            "1: has times of the processor (-C 1), not of the collective");
}

// ROCm/rccl-tests#93 and #140: an object a line, a list of them, a table.
TEST(NcclLogTest, FilesOfRcclTestsAreRead) {
  const std::string out =
      R"({"#wrong":"0","algBw":0.05,"busBw":0.08,"gpus":4,"inPlace":0,"name":"AllReduce","redop":"sum","size":1024,"time":19.5,"type":"float"})";
  std::string in = out;
  in.replace(in.find("\"inPlace\":0"), 11, "\"inPlace\":1");
  const std::string table =
      "name, nodes, ranks, size, type, redop, inPlace, time, algBw, busBw, #wrong\n"
      "\"AllReduce\", 1, 4, 1024, \"float\", \"sum\", 0, 19.5, 0.05, 0.08, \"0\"\n"
      "\"AllReduce\", 1, 4, 1024, \"float\", \"sum\", 1, 19.5, 0.05, 0.08, \"0\"\n";
  for (const std::string& text :
       {out + "\n" + in + "\n", "[\n" + out + ",\n" + in + "]\n", table}) {
    const NcclLog log = read_nccl_log(text);
    ASSERT_EQ(log.rows.size(), 1U) << text;
    EXPECT_EQ(log.rows[0].op, "allreduce");
    EXPECT_EQ(log.rows[0].ranks, 4);
    EXPECT_EQ(log.rows[0].out_of_place_us, 19.5);
    EXPECT_EQ(log.rows[0].in_place_us, 19.5);
    EXPECT_TRUE(log.problems.empty());
  }
  std::string wrong = table;
  wrong.replace(wrong.find(" 1, 4,"), 6, " 8, 4,");
  EXPECT_EQ(problem_of(wrong), "2: 4 ranks can't be on 8 nodes");
}

// -J of nccl-tests 2.17.
TEST(NcclLogTest, TheJsonOfNcclTestsIsRead) {
  const std::string device =
      R"({"rank":0,"group":0,"pid":1,"hostname":"a","device":0,"device_hex":"0x10","device_info":"NVIDIA H100 80GB HBM3"})";
  std::string second = device;
  second.replace(second.find("\"rank\":0"), 8, "\"rank\":1");
  const std::string text =
      R"({"version":3,"args":["./build/all_gather_perf","-J","x.json"],"config":{"devices":[)" +
      device + "," + second +
      R"(]},"results":[{"size":1024,"count":256,"type":"float","redop":"none","root":"-1","out_of_place":{"time":12.5,"alg_bw":0.1,"bus_bw":0.1,"nwrong":0.0},"in_place":{"time":12.25,"alg_bw":0.1,"bus_bw":0.1,"nwrong":null}}]})";
  const NcclLog log = read_nccl_log(text);
  ASSERT_EQ(log.rows.size(), 1U);
  EXPECT_EQ(log.rows[0].op, "all_gather");
  EXPECT_EQ(log.rows[0].ranks, 2);
  EXPECT_EQ(log.rows[0].nodes, 1);
  EXPECT_EQ(log.rows[0].hardware, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(log.rows[0].in_place_us, 12.25);
  std::string twice = text;
  twice.replace(twice.find("\"rank\":1"), 8, "\"rank\":0");
  EXPECT_EQ(problem_of(twice), ": devices must have each rank from 0 once");
}

TEST(NcclLogTest, WhatTheLogDoesNotSayIsUnset) {
  const NcclLog log = read_nccl_log(kHeader + kRow);
  ASSERT_EQ(log.rows.size(), 1U);
  EXPECT_EQ(log.rows.front().op, "");
  EXPECT_EQ(log.rows.front().hardware, "");
  EXPECT_EQ(log.rows.front().ranks, std::nullopt);
  EXPECT_EQ(log.rows.front().nodes, std::nullopt);
}

// Older versions have no redop, newer ones can leave one half out.
TEST(NcclLogTest, ColumnsAreThoseOfTheHeader) {
  const NcclLog log = read_nccl_log(
      "$ mpirun -np 16 ./build/alltoall_perf -b 8\n"
      "#                                      in-place\n"
      "#  size  count  type    time   algbw   busbw  #wrong\n"
      "  4096   1024  half    41.2    0.10    0.09       0\n");
  ASSERT_EQ(log.rows.size(), 1U);
  EXPECT_EQ(log.rows.front().op, "alltoall");
  EXPECT_EQ(log.rows.front().out_of_place_us, std::nullopt);
  EXPECT_EQ(log.rows.front().in_place_us, 41.2);
  EXPECT_EQ(log.rows.front().time_us(), 41.2);
}

TEST(NcclLogTest, AWarningMaySplitARow) {
  const NcclLog log =
      read_nccl_log(kHeader +
                    "        8   2     float     sum      -1 host1:17:23 [0] NCCL WARN something\n"
                    "host1:17:23 [0] NCCL INFO 12 coll channels\n"
                    "   12.50    0.00    0.00      0    12.34    0.00    0.00      0\n" +
                    kRow);
  EXPECT_EQ(log.rows.size(), 2U);
  EXPECT_TRUE(log.problems.empty());
  EXPECT_EQ(log.rows.front().out_of_place_us, 12.5);
}

TEST(NcclLogTest, ALogMayHoldSeveralTests) {
  const NcclLog log =
      read_nccl_log(kDevices + kHeader + kRow + kEnd +
                    "# Collective test starting: all_gather_perf\n" + kHeader + kRow + kEnd);
  ASSERT_EQ(log.rows.size(), 2U);
  EXPECT_EQ(log.rows[0].op, "all_reduce");
  EXPECT_EQ(log.rows[1].op, "all_gather");
}

TEST(NcclLogTest, HostsAreCountedAndRanksMustBeThere) {
  std::string two_hosts = kDevices;
  two_hosts.replace(two_hosts.rfind("host1"), 5, "host2");
  EXPECT_EQ(read_nccl_log(two_hosts + kHeader + kRow).rows.front().nodes, 2);
  std::string missing = kDevices;
  missing.replace(missing.find("Rank  1"), 7, "Rank  3");
  EXPECT_EQ(problem_of(missing + kHeader + kRow),
            "6: the list of devices has 2 ranks, the last is rank 3");
}

TEST(NcclLogTest, WhatCannotBeUsedIsRefusedWithItsLine) {
  EXPECT_EQ(problem_of(""), ": has no measurement: no header line with size, type and time");
  EXPECT_EQ(problem_of(kHeader), ": has no measurement below its header");
  EXPECT_EQ(problem_of(kHeader + kRow.substr(0, 60)), "4: the log ends within this row");
  EXPECT_EQ(problem_of(kHeader + kRow.substr(0, 60) + "\n" + kRow), "4: this row is cut off");
  std::string wrong = kRow;
  wrong.replace(wrong.find("      0 "), 7, "      7");
  EXPECT_EQ(problem_of(kHeader + wrong), "4: 7 values are wrong: the test failed");
  EXPECT_EQ(problem_of(kHeader + kRow + "# Out of bounds values : 3 FAILED\n"),
            "5: says that values were out of bounds: the test failed");
  std::string still = kRow;
  still.replace(still.find("12.50"), 5, " 0.00");
  EXPECT_EQ(problem_of(kHeader + still), "4: a time must be above 0");
  std::string mixed = kDevices;
  mixed.replace(mixed.rfind("NVIDIA H100 80GB HBM3"), 21, "NVIDIA H200");
  EXPECT_EQ(problem_of(mixed + kHeader + kRow),
            "6: the devices must be alike: \"NVIDIA H200\" beside \"NVIDIA H100 80GB HBM3\"");
}

TEST(NcclLogTest, FactsFillInWhatIsMissingAndTheRestIsAskedFor) {
  const NcclLog log = read_nccl_log(kHeader + kRow);
  std::vector<Problem> problems;
  const std::vector<Hardware> hardware = load_hardware();
  const CsvTable table = table_of(log, "some/log.txt",
                                  {.op = "all-reduce", .hardware = "H100", .ranks = 16, .nodes = 2},
                                  hardware, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(table.file, "log.txt");
  EXPECT_EQ(table.at(0, "op"), "all_reduce");
  EXPECT_EQ(table.at(0, "cluster"), "dgx-h100-16");
  EXPECT_EQ(table.integer(0, "ranks"), 16);
  EXPECT_EQ(table.integer(0, "nodes"), 2);
  EXPECT_EQ(table.at(0, "dtype"), "fp32");
  EXPECT_EQ(table.at(0, "measured.time"), "12.5us");
  EXPECT_EQ(table.lines, std::vector<std::uint32_t>{4});
  const LogFacts cluster{.op = "alltoall", .ranks = 8, .cluster = "mine.textproto"};
  const CsvTable given = table_of(log, "some/log.txt", cluster, hardware, problems);
  EXPECT_EQ(given.at(0, "cluster"), "mine.textproto");
  EXPECT_EQ(given.at(0, "op"), "all_to_all");
  table_of(log, "some/log.txt", {}, hardware, problems);
  EXPECT_EQ(problems.size(), 3U);
}

}  // namespace
}  // namespace stepsim
