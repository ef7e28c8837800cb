// Tests every way to get an experiment wrong. Each has its own message.

#include <gtest/gtest.h>

#include "schedules/pipeline/published/published_schedule.h"
#include "tests/support/experiment_case.h"

namespace stepsim {
namespace {

class BadInputTest : public ExperimentCase {
 protected:
  // A good experiment for 8 GPUs, with one line of it replaced.
  static std::string replaced(const std::string& from_text, const std::string& to_text) {
    std::string text = R"(model { catalog: "llama3-8b" }
cluster { catalog: "dgx-h100-8" }
plan {
  tp: 2
  dp: 4
  microbatch: 1
  global_batch: 64
  sequence: 8192
}
)";
    const std::size_t at = text.find(from_text);
    EXPECT_NE(at, std::string::npos);
    return text.replace(at, from_text.size(), to_text);
  }

  Lines problems_with(const std::string& from_text, const std::string& to_text) const {
    return problems_of(from(write("bad.textproto", replaced(from_text, to_text))));
  }
};

TEST_F(BadInputTest, TheExperimentIsGoodWithoutChange) {
  EXPECT_EQ(problems_with("tp: 2", "tp: 2"), Lines{});
}

TEST_F(BadInputTest, UnknownFieldIsRefusedWithItsPlaceAndWhatWasMeant) {
  const Lines lines = problems_with("  dp: 4", "  dp: 4 globalbatch: 3");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0],
            "bad.textproto:5:9: no field globalbatch in Plan; did you mean global_batch? `stepsim "
            "help plan` lists all keys");
}

TEST_F(BadInputTest, WrongUnitSaysWhatWouldBeRead) {
  const Lines lines =
      problems_with(R"(catalog: "dgx-h100-8")",
                    R"(catalog: "dgx-h100-8" dgx_superpod { nic_bandwidth: "50GB" })");
  EXPECT_EQ(
      lines,
      Lines{"cluster.dgx_superpod.nic_bandwidth: must be a bandwidth such as 400Gbps, "
            "50GB/s or 5e10 (bytes per second), not negative; is \"50GB\"; did you mean 50GB/s?"});
}

TEST_F(BadInputTest, NegativeAndZeroAndNanQuantitiesAreRefused) {
  const Lines lines = problems_with(R"(catalog: "dgx-h100-8")",
                                    R"(catalog: "dgx-h100-8"
         chip { memory_capacity: "-80GiB" memory_bandwidth: "0GB/s" launch_overhead: "nan"
                efficiency { memory_fraction: nan matmul { peak_fraction: 1.5 } } })");
  EXPECT_EQ(lines.size(), 5U);
  EXPECT_TRUE(has_line(lines, "cluster.chip.memory_capacity: must be a size such as"));
  EXPECT_TRUE(has_line(lines, "cluster.chip.memory_bandwidth: must be positive, is 0"));
  EXPECT_TRUE(has_line(lines, "cluster.chip.launch_overhead: must be a time such as"));
  EXPECT_TRUE(has_line(lines, "cluster.chip.efficiency.memory_fraction: must be above 0"));
  EXPECT_TRUE(has_line(lines, "cluster.chip.efficiency.matmul.peak_fraction: must be above 0"));
}

TEST_F(BadInputTest, KindsOfElementwiseKernelsAreThoseThatThereAre) {
  const Lines lines = problems_with(R"(catalog: "dgx-h100-8")",
                                    R"(catalog: "dgx-h100-8" chip { efficiency {
         elementwise_of { kind: "softmax" memory_fraction: 0.5 } elementwise_of { kind: "norm" }
         elementwise_of { kind: "rope" memory_fraction: -0.5 } } })");
  EXPECT_EQ(lines.size(), 3U);
  EXPECT_TRUE(has_line(lines,
                       "cluster.chip.efficiency.elementwise_of[0].kind: must be norm, rope "
                       "or rounding; is \"softmax\""));
  EXPECT_TRUE(has_line(lines,
                       "cluster.chip.efficiency.elementwise_of[1].memory_fraction: must be "
                       "given: fraction of the memory's peak that they reach"));
  EXPECT_TRUE(has_line(lines,
                       "cluster.chip.efficiency.elementwise_of[2].memory_fraction: must be "
                       "above 0 and at most 1, is -0.5"));
}

TEST_F(BadInputTest, NegativeAndZeroSizesAreRefused) {
  EXPECT_TRUE(has_line(problems_with("tp: 2", "tp: 0"), "plan.tp: must be at least 1, is 0"));
  EXPECT_TRUE(has_line(problems_with("sequence: 8192", "sequence: -1"),
                       "plan.sequence: must be at least 1, is -1"));
  EXPECT_TRUE(
      has_line(problems_with(R"(catalog: "llama3-8b")", R"(catalog: "llama3-8b" layers: -4)"),
               "model.layers: must be at least 1, is -4"));
  EXPECT_TRUE(has_line(problems_with(R"(catalog: "dgx-h100-8")",
                                     R"(catalog: "dgx-h100-8" dgx_superpod { nodes: 0 })"),
                       "cluster.dgx_superpod.nodes: must be at least 1, is 0"));
}

TEST_F(BadInputTest, SizesThatWouldOverflowAreRefused) {
  EXPECT_EQ(problems_with("dp: 4", "dp: 4000000000000000000").front(),
            "plan.dp: must be at most 1048576, is 4000000000000000000");
  EXPECT_TRUE(has_line(
      problems_with(R"(catalog: "llama3-8b")", R"(catalog: "llama3-8b" hidden: 9000000000000)"),
      "model.hidden: must be at most 2097152"));
}

TEST_F(BadInputTest, TensorParallelismMustDivideTheHeads) {
  const Lines lines = problems_with("tp: 2\n  dp: 4", "tp: 5\n  dp: 1 allow_idle_chips: true");
  EXPECT_TRUE(
      has_line(lines, "plan.tp: is 5, which does not divide the model's attention heads (32)"));
}

TEST_F(BadInputTest, PipelineStagesMustDivideTheLayers) {
  const Lines lines = problems_with("dp: 4", "dp: 1 pp: 3 allow_idle_chips: true");
  EXPECT_EQ(
      lines,
      Lines{"plan.pp: is 3, which does not divide the model's layers (32); nearest: 2 or 4, on "
            "other numbers of ranks; or give the layers of each stage by layout, such as "
            "layout=10,11*2 or layout=balanced"});
}

TEST_F(BadInputTest, MoreRanksThanChipsAreRefused) {
  const Lines lines = problems_with("dp: 4", "dp: 8");
  EXPECT_EQ(lines, Lines{"plan.ranks: tp x cp x dp x pp = 2 x 1 x 8 x 1 is more than the cluster's "
                         "8 chips; nearest: dp = 4"});
}

TEST_F(BadInputTest, BatchMustBeAMultipleOfItsParts) {
  const Lines lines = problems_with("global_batch: 64", "global_batch: 65");
  EXPECT_EQ(lines, Lines{"plan.global_batch: is 65, which is not a multiple of dp x microbatch = 4 "
                         "x 1; nearest: 64 or 68"});
}

TEST_F(BadInputTest, AnAxisOrALevelMappedTwiceIsRefused) {
  EXPECT_EQ(problems_with("tp: 2", R"(tp: 2 map: "tp:gpu/tp:node")"),
            Lines{"plan.map: axis tp is mapped twice in \"tp:gpu/tp:node\""});
  EXPECT_TRUE(has_line(problems_with("tp: 2", R"(tp: 2 map: "tp:gpu/dp:gpu")"),
                       "plan.map.dp: uses level 'gpu', which is mapped already"));
  EXPECT_TRUE(has_line(problems_with("tp: 2", R"(tp: 2 map: "tp:x")"),
                       "plan.map.tp: names level 'x', but the cluster has gpu (8), node (1)"));
}

TEST_F(BadInputTest, NamesThatAreNotInTheCatalogSayWhatIs) {
  const Lines lines = problems_with("llama3-8b", "lama3-8b");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(
      lines[0].starts_with("model.catalog: no model lama3-8b in the catalog; did you mean "
                           "llama3-8b? There are: "))
      << lines[0];
  EXPECT_TRUE(
      has_line(problems_with("dgx-h100-8", "dgx-h100-12"),
               "cluster.catalog: the size of dgx-h100-<size> must be a multiple of 8 chips, "
               "up to 16384; is \"12\""));
  EXPECT_TRUE(has_line(problems_of(from("llama3-70b-dgx-h100-51")),
                       "EXPERIMENT: no experiment llama3-70b-dgx-h100-51 in the catalog; did you "
                       "mean llama3-70b-dgx-h100-512?"));
}

TEST_F(BadInputTest, FilesThatAreNotThereSayWhy) {
  EXPECT_EQ(problems_of(from(path("none.textproto"))),
            Lines{"EXPERIMENT: cannot read none.textproto: No such file or directory"});
  EXPECT_EQ(problems_of(from(write("plan.yaml", "tp: 8"))),
            Lines{"EXPERIMENT: must be a file ending in .textproto or .json, is plan.yaml"});
}

TEST_F(BadInputTest, SchedulesAreNamesOrFilesAndHaveRules) {
  EXPECT_EQ(problems_with("tp: 2", R"(tp: 2 schedule: "zb_h11")"),
            Lines{"plan.schedule: must be one of " + schedule_names() +
                  ", optimal, or a file; is \"zb_h11\"; did you mean zb_h1?"});
  EXPECT_EQ(problems_with("tp: 2", "tp: 2 chunks: 2"),
            Lines{"plan.chunks: must be 1 for 1f1b, is 2"});
  EXPECT_EQ(problems_with("tp: 2", "tp: 2 chunks: 0"),
            Lines{"plan.chunks: must be at least 1, is 0"});
  write("own.schedule", "F0.0 X");
  const Lines lines = problems_with("tp: 2", "tp: 2 schedule: \"" + path("own.schedule") + "\"");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with(
      "plan.schedule: own.schedule: line 1: \"X\" is no op: must be like F3.0"))
      << lines[0];
}

TEST_F(BadInputTest, WhatIsNotBuiltYetSaysWhatIs) {
  EXPECT_EQ(problems_with("tp: 2", "tp: 2 zero: 4"),
            Lines{"plan.zero: must be 0 (replicated), 1 (optimizer state divided), 2 (and "
                  "gradients) or 3 (FSDP), is 4"});
  EXPECT_EQ(problems_with("tp: 2", "tp: 2 state_bytes: 14"),
            Lines{"software.state_bytes: must be 10, 12, 16 or 18; is 14"});
  EXPECT_EQ(
      problems_with("tp: 2", "tp: 2 state_bytes: 16 gradient_bytes: 4"),
      Lines{"software.gradient_bytes: is 4, but state_bytes = 16 counts 2 for it: leave out one "
            "of the two"});
  EXPECT_EQ(problems_with("tp: 2", "tp: 2 state_bytes: 16 gradient_bytes: 2"), Lines{});
  EXPECT_EQ(problems_with("tp: 2", R"(tp: 2 recompute: "some")"),
            Lines{"plan.recompute: must be none, selective, matmuls, alternate, alternate_matmuls, "
                  "all_but or full; is "
                  "\"some\""});
  EXPECT_EQ(problems_with("tp: 2", R"(tp: 2 layout: "7,14x2")"),
            Lines{"plan.layout: must be layers of each stage such as 20,20,20,20 or 7,8*14,7, or "
                  "balanced; is "
                  "\"7,14x2\""});
}

TEST_F(BadInputTest, VariationIsChecked) {
  const Lines lines = problems_of(
      from(write("bad.textproto", replaced("plan {",
                                           "variation { jitter: 2 straggler { rank: 9000 "
                                           "slowdown: 1.5 } } plan {"))));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "variation.jitter: must be at most 0.15, is 2");
  EXPECT_TRUE(lines[1].starts_with("variation.straggler[0].rank: must be ranks of the plan"));
}

TEST_F(BadInputTest, MissingPartsAreNamed) {
  EXPECT_EQ(problems_of(from(write("empty.textproto", "name: \"x\""))),
            (Lines{"model: must be given, in the file or with --model",
                   "cluster: must be given, in the file or with --cluster",
                   "plan: must be given, in the file or with --plan"}));
  EXPECT_EQ(problems_of(from_flags("llama3-8b", "dgx-h100-8", "")),
            Lines{"--plan: must be given where there is no EXPERIMENT"});
  EXPECT_EQ(problems_with("  sequence: 8192\n", ""),
            Lines{"plan.sequence: must be given: tokens of a sequence"});
}

TEST_F(BadInputTest, AllProblemsOfAFileAndOfOverridesComeAtOnce) {
  const std::string file = write("bad.textproto", R"(model { catalog: "no-such-model" }
cluster {
  catalog: "dgx-h100-8"
  dgx_superpod { nodes: -4 nic_bandwidth: "50GB" }
}
plan { tpp: 8 tp: "eight" dp: 99999999999999999999 zero: 4 pp: -1 sequence: 8192 }
)");
  const Lines lines = problems_of(with_overrides(file, {"plan.colour=3", "plan.microbatch"}));
  // The list does not include that tp and dp are missing, or that the file's 0 ranks leave chips
  // idle.
  const Lines starts = {"bad.textproto:6:8: no field tpp in Plan; did you mean tp?",
                        "bad.textproto:6:19: Expected integer, got: \"eight\"",
                        "bad.textproto:6:31: Integer out of range (99999999999999999999)",
                        "--set plan.microbatch: must be path=value, as in plan.tp=8",
                        "model.catalog: no model no-such-model in the catalog.",
                        "--set plan.colour: no field colour in Plan;",
                        "cluster.dgx_superpod.nic_bandwidth: must be a bandwidth such as",
                        "cluster.dgx_superpod.nodes: must be at least 1, is -4",
                        "plan.global_batch: must be given",
                        "plan.zero: must be 0",
                        "plan.pp: must be at least 1, is -1"};
  for (const std::string& start : starts) EXPECT_TRUE(has_line(lines, start)) << start;
  EXPECT_EQ(lines.size(), starts.size()) << ::testing::PrintToString(lines);
}

TEST_F(BadInputTest, ASyntaxErrorIsNotFollowedByWhatItHides) {
  const Lines lines = problems_of(from(write("bad.textproto", "model { catalog \"x\"\nplan {}\n")));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("bad.textproto:1:17: ")) << lines[0];
}

TEST_F(BadInputTest, JsonProblemsComeAllAtOnceByField) {
  const std::string file = write("bad.json", R"({
    "model": {"catalog": "llama3-8b", "heads": "many"},
    "cluster": {"catalog": "dgx-h100-8", "torus": {"axes": {"size": 4}}, "dgx_superpod": {}},
    "plan": {"tpp": 8, "dp": 4, "tp": 2.5, "microbatch": 1, "global_batch": 64, "sequence": 8192}
  })");
  const Lines lines = problems_of(from(file));
  EXPECT_TRUE(has_line(lines,
                       "bad.json: model.heads: must be a number, true or false, without "
                       "quotes, is \"many\""));
  EXPECT_TRUE(has_line(lines, "bad.json: cluster.torus.axes: must be a list in brackets, is "));
  EXPECT_TRUE(has_line(lines, "bad.json: plan.tpp: no field tpp in Plan; did you mean tp?"));
  EXPECT_TRUE(has_line(lines, "bad.json: plan.tp: must be a whole number, is 2.5"));
  EXPECT_TRUE(has_line(lines, "bad.json: cluster.dgx_superpod: there can be only one topology"));
}

TEST_F(BadInputTest, BrokenJsonSaysWhere) {
  const Lines lines = problems_of(from(write("bad.json", "{\n  \"model\": }")));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("bad.json: parse error at line 2, column 12")) << lines[0];
}

}  // namespace
}  // namespace stepsim
