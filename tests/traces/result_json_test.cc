#include "traces/results/result_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/hand_made_run.h"

namespace stepsim {
namespace {

using nlohmann::ordered_json;

ordered_json parsed(const HandMadeRun& run) {
  return ordered_json::parse(result_json(run.view()));
}

std::vector<std::string> keys(const ordered_json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

// result_json.h gives the order.
TEST(ResultJsonTest, KeysComeInTheirOrder) {
  const ordered_json result = parsed(hand_made_run());
  EXPECT_EQ(keys(result), (std::vector<std::string>{"name",
                                                    "step_time_s",
                                                    "steps",
                                                    "tokens_per_s",
                                                    "tokens_per_s_per_chip",
                                                    "model_flops_per_step",
                                                    "flops_convention",
                                                    "peak_flops_per_s_per_chip",
                                                    "model_flops_utilization",
                                                    "hardware_flops_utilization",
                                                    "fidelity",
                                                    "granularity",
                                                    "chips",
                                                    "breakdown_s",
                                                    "critical_path",
                                                    "memory",
                                                    "energy",
                                                    "links",
                                                    "bytes_by_axis",
                                                    "simulator"}));
  EXPECT_EQ(keys(result["breakdown_s"]),
            (std::vector<std::string>{"compute", "exposed_communication", "bubble", "idle"}));
  EXPECT_EQ(keys(result["breakdown_s"]["exposed_communication"]),
            (std::vector<std::string>{"tp", "cp", "ep", "dp", "pp", "host", "other"}));
  EXPECT_EQ(keys(result["memory"]),
            (std::vector<std::string>{"peak_bytes", "capacity_bytes", "fits", "fits_certainty",
                                      "peak_rank", "peak_time_s", "by_category_bytes", "peak_op",
                                      "by_stage"}));
  EXPECT_EQ(keys(result["memory"]["by_stage"][0]),
            (std::vector<std::string>{"stage", "rank", "peak_bytes", "peak_time_s", "peak_op"}));
  EXPECT_EQ(keys(result["memory"]["by_category_bytes"]),
            (std::vector<std::string>{"parameters", "gradients", "optimizer", "activations",
                                      "gathered_parameters", "buffers", "fixed_overhead"}));
  EXPECT_EQ(keys(result["simulator"]),
            (std::vector<std::string>{"ops", "events", "rate_updates", "packet_hops", "wall_s",
                                      "cpu_s", "peak_rss_bytes"}));
}

TEST(ResultJsonTest, TimesAreExactDecimals) {
  const std::string text = result_json(hand_made_run().view());
  EXPECT_NE(text.find("\"step_time_s\": 0.000005001000,"), std::string::npos);
  EXPECT_NE(text.find("\"compute\": 0.000002000000,"), std::string::npos);
  EXPECT_NE(text.find("\"peak_time_s\": 0.000003500400,"), std::string::npos);
}

// Returns the picoseconds of the decimal with 12 fractional digits that follows `key` in `text`.
std::int64_t picoseconds_after(const std::string& text, const std::string& key) {
  const std::size_t at = text.find("\"" + key + "\": ") + key.size() + 4;
  const std::size_t point = text.find('.', at);
  return std::stoll(text.substr(at, point - at) + text.substr(point + 1, 12));
}

TEST(ResultJsonTest, BreakdownAndCriticalPathAddUpToTheStep) {
  const std::string text = result_json(hand_made_run().view());
  const std::int64_t step = picoseconds_after(text, "step_time_s");
  std::int64_t breakdown = 0;
  for (const char* key :
       {"compute", "tp", "cp", "ep", "dp", "pp", "host", "other", "bubble", "idle"}) {
    breakdown += picoseconds_after(text, key);
  }
  EXPECT_EQ(breakdown, step);
  std::int64_t path = 0;
  for (std::size_t at = 0; (at = text.find("\"duration_s\"", at)) != std::string::npos; ++at) {
    path += picoseconds_after(text.substr(at), "duration_s");
  }
  EXPECT_EQ(path, step);
}

TEST(ResultJsonTest, ValuesAreThoseOfTheRun) {
  const ordered_json result = parsed(hand_made_run());
  EXPECT_EQ(result["name"], "tiny-on-four");
  EXPECT_EQ(result["steps"], 1);
  EXPECT_EQ(result["chips"], 4);
  EXPECT_EQ(result["fidelity"], "flow");
  EXPECT_EQ(result["granularity"], "pipelined");
  EXPECT_EQ(result["flops_convention"], "causal");
  EXPECT_DOUBLE_EQ(result["tokens_per_s"], 40 / 5.001e-6);
  // 600,120 FLOPs of 5.001 us x 4 chips x 50 GFLOP/s = 1,000,200.
  EXPECT_DOUBLE_EQ(result["hardware_flops_utilization"], 0.6);
  EXPECT_EQ(result["critical_path"][0]["label"], "forward");
  EXPECT_EQ(result["memory"]["peak_bytes"], 750'000'000);
  EXPECT_EQ(result["memory"]["peak_rank"], 2);
  EXPECT_EQ(result["memory"]["fits"], true);
  EXPECT_EQ(result["links"].size(), 3U);
  EXPECT_EQ(result["links"][0]["name"], "node0.gpu0>node0.nvswitch");
  EXPECT_EQ(result["links"][0]["utilization"], 0.5);
  EXPECT_EQ(result["links"][0]["bytes"], 2500);
  EXPECT_EQ(result["bytes_by_axis"]["tp"], 16384);
  EXPECT_EQ(result["simulator"]["rate_updates"], 77);
}

TEST(ResultJsonTest, APlanFitsWithItsLastByte) {
  HandMadeRun run = hand_made_run();
  run.cluster.chip.memory_capacity = Bytes(750'000'000);
  EXPECT_EQ(parsed(run)["memory"]["fits"], true);
  run.cluster.chip.memory_capacity = Bytes(749'999'999);
  EXPECT_EQ(parsed(run)["memory"]["fits"], false);
}

TEST(ResultJsonTest, ListsIdleChipsAfterTheChips) {
  HandMadeRun run = hand_made_run();
  run.graph.ranks.pop_back();
  run.graph.ranks.pop_back();
  const std::vector<std::string> names = keys(parsed(run));
  EXPECT_EQ(names[13], "idle_chips");
  EXPECT_EQ(parsed(run)["idle_chips"], (ordered_json{"node0.gpu2", "node0.gpu3"}));
}

TEST(ResultJsonTest, EscapesNames) {
  HandMadeRun run = hand_made_run();
  run.experiment.name = "a \"quoted\"\tname\\";
  EXPECT_EQ(parsed(run)["name"], run.experiment.name);
}

TEST(ResultJsonTest, OnlyTheSimulatorObjectDependsOnTheMachine) {
  HandMadeRun run = hand_made_run();
  const std::string before = result_json(run.view());
  run.result.statistics.wall_s *= 2;
  run.result.statistics.peak_rss_bytes += 1;
  const std::string after = result_json(run.view());
  EXPECT_NE(before, after);
  EXPECT_EQ(before.substr(0, before.find("\"simulator\"")),
            after.substr(0, after.find("\"simulator\"")));
}

}  // namespace
}  // namespace stepsim
