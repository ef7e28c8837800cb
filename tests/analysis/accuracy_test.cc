#include "measured/accuracy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "measured/simulate_training_run.h"
#include "sim/base/error.h"
#include "sim/run/simulate.h"
#include "tests/support/reference_folder.h"
#include "tests/support/written_table.h"

namespace stepsim {
namespace {

AccuracyRow row(const std::string& source, double measured, std::optional<double> predicted) {
  AccuracyRow result;
  result.source_id = source;
  result.metric = "time_s";
  result.measured = measured;
  result.predicted = predicted;
  return result;
}

TEST(CsvTableTest, QuotedFieldsKeepCommasQuotesAndLines) {
  const CsvTable table = read_csv(
      write_table("quoted.csv", "a,b,c\n1,\"x, \"\"y\"\"\",\r\n\n\"two\nlines\",4.5,-7\n"));
  ASSERT_EQ(table.records.size(), 2U);
  EXPECT_EQ(table.at(0, "b"), "x, \"y\"");
  EXPECT_EQ(table.at(0, "c"), "");
  EXPECT_EQ(table.at(1, "a"), "two\nlines");
  EXPECT_EQ(table.number(1, "b"), 4.5);
  EXPECT_EQ(table.integer(1, "c"), -7);
  EXPECT_EQ(table.integer(1, "b"), std::nullopt);
  EXPECT_EQ(table.at(0, "none"), "");
  EXPECT_EQ(table.lines, (std::vector<std::uint32_t>{2, 4}));
}

TEST(CsvTableTest, EveryWrongRecordIsNamed) {
  try {
    read_csv(write_table("wrong.csv", "a,b\n1\n1,2\n1,2,3\n"));
    FAIL();
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 2U);
    EXPECT_TRUE(error.problems()[0].field.ends_with("wrong.csv:2"));
    EXPECT_TRUE(error.problems()[1].field.ends_with("wrong.csv:4"));
  }
  EXPECT_THROW(read_csv(write_table("open.csv", "a,b\n1,\"2\n")), ConfigError);
  EXPECT_THROW(read_csv("/no/such/file.csv"), ConfigError);
}

std::string problem_of(const std::string& path) {
  try {
    read_csv(path);
  } catch (const ConfigError& error) {
    return error.problems().front().message;
  }
  return "none";
}

TEST(CsvTableTest, SpreadsheetsMarkTheirByteOrder) {
  const CsvTable table = read_csv(write_table("mark.csv",
                                              "\xef\xbb\xbf"
                                              "a,b\r\n1,2\r\n"));
  EXPECT_EQ(table.header, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(table.at(0, "b"), "2");
  EXPECT_EQ(problem_of(write_table("empty.csv", "\n")), "is empty");
  EXPECT_EQ(problem_of(testing::TempDir()), "can't be read: it is a folder");
}

TEST(AccuracyTest, TheHeaderTellsWhetherAnythingWasMeasured) {
  CsvTable table;
  table.header = {"chip", "op", "shape", "measured.time"};
  EXPECT_TRUE(is_measured_table(table));
  table.header = {"id", "model", "chip", "chip_count", "global_batch", "step_time_s"};
  EXPECT_FALSE(is_measured_table(table));
  EXPECT_NE(why_no_table().find("scripts/convert_tables.py"), std::string_view::npos);
}

TEST(AccuracyTest, SummariesAreMedianNearestRankAndMean) {
  // Errors of source a: -10 %, +20 %, +30 %, +40 %. Median 25 %, 90th percentile (nearest rank 4)
  // 40 %, mean +20 %. Source b has one row and one that was skipped.
  const std::vector<AccuracySummary> summary =
      summarise({row("a", 10, 9), row("a", 10, 12), row("b", 1, 1.5), row("a", 10, 13),
                 row("a", 10, 14), row("b", 1, std::nullopt)});
  ASSERT_EQ(summary.size(), 3U);
  EXPECT_EQ(summary[0].source_id, "a");
  EXPECT_EQ(summary[0].rows, 4U);
  EXPECT_NEAR(summary[0].median_absolute_relative_error, 0.25, 1e-12);
  EXPECT_NEAR(summary[0].p90_absolute_relative_error, 0.4, 1e-12);
  EXPECT_NEAR(summary[0].mean_relative_error, 0.2, 1e-12);
  EXPECT_EQ(summary[1].source_id, "b");
  EXPECT_EQ(summary[1].rows, 1U);
  EXPECT_EQ(summary[1].skipped, 1U);
  EXPECT_EQ(summary[2].source_id, "all");
  EXPECT_EQ(summary[2].rows, 5U);
}

// Twelve runs, some of which are the same; the fourth says what can't be, the eighth can't be read,
// and what the last three say is not enough.
std::string some_runs() {
  std::string text =
      "id,source,grade,model.layers,model.hidden,model.intermediate,model.heads,model.vocabulary,"
      "cluster,plan.dp,plan.sequence,plan.global_batch,plan.microbatch,measured.step_time\n";
  for (int i = 0; i < 12; ++i) {
    text += "run" + std::to_string(i) + ",mine," + (i > 8 ? "C" : "A") + "," +
            std::to_string(1 + i % 5) + ",1024,4096,8,32000,dgx-h100-8,8,1024,16," +
            (i == 7 ? "many" : "1") + "," + (i == 3 ? "30" : "20ms") + "\n";
  }
  return text;
}

TEST(AccuracyTest, AnyNumberOfThreadsPredictsTheSame) {
  const CsvTable table = read_csv(write_table("threads.csv", some_runs()));
  std::vector<std::size_t> done;
  PredictOptions options;
  options.progress = [&](std::size_t records, std::size_t of) {
    EXPECT_EQ(of, 12U);
    done.push_back(records);
    return true;
  };
  const std::vector<AccuracyRow> alone = predict(table, options);
  ASSERT_EQ(alone.size(), 12U);
  for (const std::size_t threads : {2U, 5U, 30U}) {
    options.threads = threads;
    done.clear();
    const std::vector<AccuracyRow> rows = predict(table, options);
    EXPECT_TRUE(std::ranges::is_sorted(done));
    ASSERT_EQ(rows.size(), alone.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i].id, alone[i].id);
      EXPECT_EQ(rows[i].predicted, alone[i].predicted);
      EXPECT_EQ(rows[i].skipped, alone[i].skipped);
    }
  }
  options.progress = [](std::size_t, std::size_t) { return false; };
  EXPECT_THROW(predict(table, options), SimulationInterrupted);
}

TEST(AccuracyTest, WhatCantBeReadOrCantBeRightIsSaid) {
  const CsvTable table = read_csv(write_table("words.csv", some_runs()));
  const std::vector<AccuracyRow> rows = predict(table, {});
  EXPECT_TRUE(rows[7].skipped.starts_with("--plan microbatch: ")) << rows[7].skipped;
  EXPECT_EQ(rows[0].predicted, rows[5].predicted) << "the same run";
  // 16 x 1,024 tokens of 4 layers of 17e6 parameters and a head of 34e6 are 1e13 FLOPs: in 30 s on
  // 8 x 989 TFLOP/s an MFU of 0.00004.
  EXPECT_TRUE(rows[3].implausible.starts_with("the step time would be an MFU of ")) << rows[3].id;
  EXPECT_TRUE(rows[3].predicted);
  for (const std::size_t i : {0U, 1U, 2U, 4U}) EXPECT_EQ(rows[i].implausible, "");
  const std::vector<AccuracySummary> summary = summarise(rows);
  ASSERT_EQ(summary.size(), 2U);
  EXPECT_EQ(summary[0].rows, 7U);
  EXPECT_EQ(summary[0].skipped, 1U);
  EXPECT_EQ(summary[0].implausible, 1U);
  EXPECT_TRUE(summary[1].under_specified);
  EXPECT_EQ(summary[1].rows, 3U);
}

// A software's habits change what is kept: scores of 16 heads and 2,048 x 2,048 pairs in four
// layers, 5 bytes each; nine dropout masks, of the embedding and two a layer; fp32 logits in place
// of fp16 ones. Gradients have 2 bytes less, the context is not counted.
TEST(AccuracyTest, MemoryIsWhatTheSoftwareCounts) {
  const CsvTable table = read_csv(write_table(
      "software.csv",
      "id,model.layers,model.hidden,model.intermediate,model.heads,model.vocabulary,"
      "model.gated_mlp,model.norm,model.learned_positions,model.tied_embeddings,"
      "model.attention_bias,model.mlp_bias,cluster,software,plan.dp,plan.sequence,"
      "plan.global_batch,plan.zero,plan.dtype,measured.peak_memory\n"
      "a,4,2048,8192,16,51200,false,layer,2048,true,true,true,dgx-h100-8,,8,2048,8,0,fp16,20GB\n"
      "b,4,2048,8192,16,51200,false,layer,2048,true,true,true,dgx-h100-8,megatron-lm-2023,8,2048,"
      "8,0,fp16,20GB\n"));
  const std::vector<AccuracyRow> rows = predict(table, {});
  ASSERT_EQ(rows.size(), 2U);
  for (const AccuracyRow& row : rows) ASSERT_TRUE(row.predicted) << row.skipped;
  const double scores = 5.0 * 16 * 2048 * 2048 * 4, masks = 9.0 * 2048 * 2048;
  const double logits = 2.0 * 2048 * 51'200;
  const double gradients = 2.0 * (51'200 + 2048 + 4 * 12 * 2048) * 2048;
  const double gigabyte = 1e9;
  EXPECT_NEAR(*rows[1].predicted - *rows[0].predicted,
              scores + masks + logits - gradients - 1.5 * (1 << 30), 0.25 * gigabyte);
}

// Memory of published runs. None of it is fitted, but the memory that each software keeps is known
// (catalog/software).
TEST(AccuracyTest, MemoryOfTrainingRunsIsNearWhatWasMeasured) {
  const CsvTable table =
      read_csv((reference_folder() / "measured" / "training_runs_memory.csv").string());
  const std::vector<AccuracySummary> summaries = summarise(predict(table, {}));
  ASSERT_EQ(summaries.size(), 5U);
  for (const AccuracySummary& summary : summaries) {
    EXPECT_GT(summary.rows, 3U) << summary.source_id;
    EXPECT_LT(summary.median_absolute_relative_error, 0.04) << summary.source_id;
    EXPECT_LT(summary.p90_absolute_relative_error, 0.15) << summary.source_id;
    EXPECT_LT(std::abs(summary.mean_relative_error), 0.06) << summary.source_id;
  }
}

// Steps of other published runs, of three pieces of software on GPUs and TPUs.
TEST(AccuracyTest, StepsOfTrainingRunsAreNearWhatWasMeasured) {
  const CsvTable all =
      read_csv((reference_folder() / "measured" / "training_runs_other_sources.csv").string());
  const std::map<std::string, double> medians = {
      {"nemo_docs_perf", 0.06}, {"maxtext_v5p", 0.06}, {"llm_foundry_h100", 0.08}};
  CsvTable table{.file = all.file, .header = all.header};
  for (std::size_t record = 0; record < all.records.size(); ++record) {
    if (!medians.contains(std::string(all.at(record, "source")))) continue;
    table.records.push_back(all.records[record]);
    table.lines.push_back(all.lines[record]);
  }
  ASSERT_EQ(table.records.size(), 25U + 16U + 48U);
  std::size_t sources = 0;
  for (const AccuracySummary& summary : summarise(predict(table, {}))) {
    const auto median = medians.find(summary.source_id);
    if (median == medians.end()) continue;  // "all"
    ++sources;
    EXPECT_EQ(summary.skipped, 0U) << summary.source_id;
    EXPECT_LT(summary.median_absolute_relative_error, median->second) << summary.source_id;
    EXPECT_LT(std::abs(summary.mean_relative_error), 0.08) << summary.source_id;
  }
  EXPECT_EQ(sources, medians.size());
}

// What the allocator does not use is there while the chip has room for it.
TEST(RunPredictionTest, UnusedMemoryEndsWithTheChips) {
  RunPrediction run{.tensor_bytes = 60, .unused_bytes = 6, .fixed_bytes = 2, .capacity_bytes = 80};
  EXPECT_EQ(run.memory_bytes(MemoryFigure::kAllocated), 60);
  EXPECT_EQ(run.memory_bytes(MemoryFigure::kReserved), 66);
  EXPECT_EQ(run.memory_bytes(MemoryFigure::kDevice), 68);
  run.capacity_bytes = 65;
  EXPECT_EQ(run.memory_bytes(MemoryFigure::kReserved), 63);
  EXPECT_EQ(run.memory_bytes(MemoryFigure::kDevice), 65);
  run.capacity_bytes = 50;  // the tensors alone don't fit
  EXPECT_EQ(run.memory_bytes(MemoryFigure::kDevice), 62);
}

}  // namespace
}  // namespace stepsim
