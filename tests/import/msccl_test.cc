// Algorithms of MSCCL: what was read is proved, and takes the time of the same algorithm of
// stepsim.

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "import/importer.h"
#include "proto/collective_files.h"
#include "tests/support/idle_collective.h"
#include "tests/support/temporary_folder.h"

namespace stepsim {
namespace {

std::string algorithm_file(const std::string& name, const std::string& text) {
  const std::string path = (temporary_folder() / name).string();
  std::ofstream(path) << text;
  return path;
}

Imported msccl_of(const std::string& text) {
  return find_importer("msccl")->read({.files = {algorithm_file("algorithm.xml", text)}});
}

std::string msccl_problem(const std::string& text) {
  try {
    msccl_of(text);
  } catch (const ConfigError& error) {
    return error.problems()[0].field + ": " + error.problems()[0].message;
  }
  return "";
}

std::string step_text(int s, const std::string& type, char from, int source, char to, int target,
                      const std::string& more = "depid=\"-1\" deps=\"-1\" hasdep=\"0\"") {
  return "<step s=\"" + std::to_string(s) + "\" type=\"" + type + "\" srcbuf=\"" + from +
         "\" srcoff=\"" + std::to_string(source) + "\" dstbuf=\"" + to + "\" dstoff=\"" +
         std::to_string(target) + "\" cnt=\"1\" " + more + "/>\n";
}

std::string head(const std::string& coll, int gpus, int in_place) {
  return "<algo name=\"x\" coll=\"" + coll + "\" ngpus=\"" + std::to_string(gpus) +
         "\" nchunksperloop=\"8\" nchannels=\"1\" proto=\"Simple\" inplace=\"" +
         std::to_string(in_place) + "\" outofplace=\"" + std::to_string(1 - in_place) + "\">\n";
}

// An all-reduce round a ring, one thread block a GPU: reduce-scatter, then all-gather.
std::string ring_all_reduce(int n) {
  std::string text = head("allreduce", n, 1);
  for (int gpu = 0; gpu < n; ++gpu) {
    text += "<gpu id=\"" + std::to_string(gpu) + "\" i_chunks=\"" + std::to_string(n) +
            "\" o_chunks=\"0\" s_chunks=\"0\"><tb id=\"0\" send=\"" +
            std::to_string((gpu + 1) % n) + "\" recv=\"" + std::to_string((gpu + n - 1) % n) +
            "\" chan=\"0\">\n";
    const auto chunk = [&](int back) { return (gpu + 2 * n - back) % n; };
    int s = 0;
    text += step_text(s++, "s", 'i', chunk(0), 'i', chunk(0));
    for (int i = 1; i < n - 1; ++i) text += step_text(s++, "rrs", 'i', chunk(i), 'i', chunk(i));
    text += step_text(s++, "rrcs", 'i', chunk(n - 1), 'i', chunk(n - 1));
    for (int i = 0; i < n - 2; ++i) text += step_text(s++, "rcs", 'i', chunk(i), 'i', chunk(i));
    text += step_text(s++, "r", 'i', chunk(n - 2), 'i', chunk(n - 2)) + "</tb></gpu>\n";
  }
  return text + "</algo>\n";
}

double time_of_list(const StepList& list, Bytes bytes) {
  const Cluster cluster = one_node(static_cast<int>(list.members), Bandwidth(1e9));
  OpGraph graph = graph_of(cluster, {.communicator = {},
                                     .op = list.op,
                                     .bytes = bytes,
                                     .algorithm = AlgorithmChoice::kCustom,
                                     .step_list = 0});
  graph.step_lists.push_back(list);
  return to_seconds(simulate(graph, cluster, {.granularity = Granularity::kStepped}).step_time);
}

TEST(MscclTest, ARingTakesTheTimeOfTheBuiltInRing) {
  const std::string path = algorithm_file("ring.textproto", msccl_of(ring_all_reduce(8)).text);
  const StepList list = load_step_list(path);
  EXPECT_EQ(list.steps.size(), 8U * 14U);
  const Cluster cluster = one_node(8, Bandwidth(1e9));
  const Bytes bytes(8 << 20);
  const double ring = simulated(cluster,
                                {.communicator = {},
                                 .op = CollectiveOp::kAllReduce,
                                 .bytes = bytes,
                                 .algorithm = AlgorithmChoice::kRing},
                                Granularity::kStepped);
  EXPECT_NEAR(time_of_list(list, bytes), ring, 1e-9 * ring);
}

// All pairs with a buffer aside: each GPU adds what the others sent, and sends the sum to all.
std::string all_pairs(int n, const std::string& late = "re") {
  std::string text = head("allreduce", n, 1);
  for (int gpu = 0; gpu < n; ++gpu) {
    text += "<gpu id=\"" + std::to_string(gpu) + "\" i_chunks=\"" + std::to_string(n) +
            "\" o_chunks=\"0\" s_chunks=\"" + std::to_string(n) + "\">\n";
    std::string added = "<tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\">\n";
    int s = 0;
    int tb = 1;
    for (int other = 0; other < n; ++other) {
      if (other == gpu) continue;
      const std::string waits = "depid=\"" + std::to_string(tb) + "\" deps=\"1\" hasdep=\"1\"";
      added += step_text(s++, late, 's', other, 'i', gpu, waits);
      ++tb;
    }
    const std::string last = std::to_string(s - 1);
    text += added + "</tb>\n";
    tb = 1;
    for (int other = 0; other < n; ++other) {
      if (other == gpu) continue;
      text +=
          "<tb id=\"" + std::to_string(tb++) + "\" send=\"" + std::to_string(other) + "\" recv=\"" +
          std::to_string(other) + "\" chan=\"0\">\n" + step_text(0, "s", 'i', other, 's', gpu) +
          step_text(1, "r", 'i', gpu, 's', other) +
          step_text(2, "s", 'i', gpu, 'i', gpu, "depid=\"0\" deps=\"" + last + "\" hasdep=\"0\"") +
          step_text(3, "r", 'i', other, 'i', other) + "</tb>\n";
    }
    text += "</gpu>\n";
  }
  return text + "</algo>\n";
}

TEST(MscclTest, AllPairsTakeTwoRoundsSideBySide) {
  const std::string path = algorithm_file("pairs.textproto", msccl_of(all_pairs(4)).text);
  const StepList list = load_step_list(path);
  EXPECT_EQ(list.steps.size(), 2U * 4U * 3U);
  // Twice three messages of a quarter, over a link of 1 GB/s.
  const double expected = 2 * 3 * (4 << 20) / 4 / 1e9;
  EXPECT_NEAR(time_of_list(list, Bytes(4 << 20)), expected, 0.001 * expected);
}

TEST(MscclTest, AnAllToAllNumbersItsPairs) {
  std::string text = head("alltoall", 2, 0);
  for (int gpu = 0; gpu < 2; ++gpu) {
    const int other = 1 - gpu;
    text +=
        "<gpu id=\"" + std::to_string(gpu) +
        "\" i_chunks=\"2\" o_chunks=\"2\" s_chunks=\"0\">\n<tb id=\"0\" send=\"-1\" recv=\"-1\" "
        "chan=\"0\">" +
        step_text(0, "cpy", 'i', gpu, 'o', gpu) + "</tb><tb id=\"1\" send=\"" +
        std::to_string(other) + "\" recv=\"" + std::to_string(other) + "\" chan=\"0\">" +
        step_text(0, "s", 'i', other, 'o', gpu) + step_text(1, "r", 'i', gpu, 'o', other) +
        "</tb></gpu>\n";
  }
  const StepList list =
      load_step_list(algorithm_file("pairs.textproto", msccl_of(text + "</algo>").text));
  EXPECT_EQ(list.steps[0].blocks, std::vector<std::uint32_t>{1});  // 0 to 1
  EXPECT_EQ(list.steps[1].blocks, std::vector<std::uint32_t>{2});  // 1 to 0
}

TEST(MscclTest, WhatIsWrongIsRefusedAtItsLine) {
  std::string text = ring_all_reduce(4);
  std::string wrong = text;
  wrong.replace(wrong.find("\"rrs\""), 5, "\"rsr\"");
  EXPECT_EQ(msccl_problem(wrong),
            "algorithm.xml:4: type must be s, r, rcs, rrs, rrc, rrcs, cpy, re or nop, is \"rsr\"");
  wrong = text;
  wrong.replace(wrong.find("\"allreduce\""), 11, "\"allredoce\"");
  EXPECT_NE(msccl_problem(wrong).find("did you mean allreduce?"), std::string::npos);
  // A chunk that is copied where it should be added: the proof finds it.
  wrong = text;
  wrong.replace(wrong.find("\"rrcs\""), 6, "\"rcs\"");
  EXPECT_NE(msccl_problem(wrong).find("must do what all-reduce promises"), std::string::npos);
  // A message that nobody sends.
  wrong = text;
  wrong.replace(wrong.find("chan=\"0\""), 8, "chan=\"1\"");
  EXPECT_NE(msccl_problem(wrong).find("never runs"), std::string::npos);
}

}  // namespace
}  // namespace stepsim
