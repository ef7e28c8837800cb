// Tables in the program's own keys: docs/measured-tables.md.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiment/simulate_experiment.h"
#include "measured/predict_own_rows.h"
#include "measured/run_rows.h"
#include "proto/load_experiment.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

CsvTable table_of(const std::string& header, const std::vector<std::vector<std::string>>& records) {
  CsvTable table{.file = "t.csv"};
  for (const std::string_view column : split_text(header, ',')) table.header.emplace_back(column);
  table.records = records;
  for (std::size_t i = 0; i < records.size(); ++i) {
    table.lines.push_back(static_cast<std::uint32_t>(i + 2));
  }
  return table;
}

const char* const kRun =
    "id,source,model,cluster,software,plan.dp,plan.zero,plan.global_batch,plan.sequence,";

std::vector<std::string> run_with(const std::vector<std::string>& cells) {
  std::vector<std::string> record = {"a", "log", "llama3-8b", "dgx-h100-8", "torchtitan",
                                     "8", "3",   "8",         "2048"};
  record.insert(record.end(), cells.begin(), cells.end());
  return record;
}

double simulated() {
  const Experiment experiment =
      load_experiment(with_keys({.model = "llama3-8b", .cluster = "dgx-h100-8"},
                                "dp=8,zero=3,global_batch=8,sequence=2048,software=torchtitan"));
  return to_seconds(
      simulate_experiment(experiment, ExperimentOptions{}).runs.front().metrics.step_time);
}

TEST(OwnRowsTest, ARowIsPredictedAsTheRunOfItsKeys) {
  const CsvTable table = table_of(std::string(kRun) + "measured.step_time", {run_with({"400ms"})});
  ASSERT_TRUE(is_measured_table(table));
  const std::vector<AccuracyRow> rows = predict(table, {});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].skipped, "");
  EXPECT_EQ(rows[0].predicted, simulated());
  EXPECT_EQ(rows[0].measured, 0.4);
  EXPECT_EQ(rows[0].chip, "h100-sxm");
  EXPECT_EQ(rows[0].source_id, "log");
  EXPECT_TRUE(rows[0].interval);
}

// One step of 0.4 s, as each figure says it.
TEST(OwnRowsTest, EveryFigureOfSpeedIsAStepTime) {
  const double tokens = 8 * 2048;
  const ModelSpec model = load_model("llama3-8b");
  const double causal = model_flops(model, 8, 2048, AttentionFlops::kCausal);
  const double full = model_flops(model, 8, 2048, AttentionFlops::kFull);
  const double peak = load_chip("h100-sxm").peak_of(DataType::kBf16).value();
  struct Case {
    std::string columns;
    std::vector<std::string> cells;
  };
  for (const Case& one :
       std::vector<Case>{{"measured.step_time", {"0.4"}},
                         {"measured.tokens_per_s", {write_double(tokens / 0.4)}},
                         {"measured.tokens_per_s_per_chip", {write_double(tokens / 0.4 / 8)}},
                         {"measured.flops_per_chip", {write_double(causal / 0.4 / 8)}},
                         {"measured.flops_per_chip,measured.attention_flops",
                          {write_double(full / 0.4 / 8), "full"}},
                         {"measured.mfu", {write_double(causal / 0.4 / 8 / peak)}}}) {
    const std::vector<AccuracyRow> rows =
        predict(table_of(kRun + one.columns, {run_with(one.cells)}), {});
    ASSERT_EQ(rows.size(), 1U) << one.columns;
    EXPECT_EQ(rows[0].metric, "step_time_s");
    EXPECT_NEAR(rows[0].measured, 0.4, 1e-9) << one.columns;
  }
}

TEST(OwnRowsTest, FiguresThatDisagreeAreSaid) {
  const std::vector<AccuracyRow> rows =
      predict(table_of(std::string(kRun) + "measured.step_time,measured.tokens_per_s,assumed",
                       {run_with({"0.4s", "20000", "the batch"})}),
              {});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].assumed,
            (std::vector<std::string>{"the batch",
                                      "measured.step_time, not measured.tokens_per_s, which says "
                                      "0.8192 s"}));
}

TEST(OwnRowsTest, MemoryIsOfTheFigureThatTheRowNames) {
  std::vector<double> predicted;
  for (const char* figure : {"allocated", "reserved", "device"}) {
    const std::vector<AccuracyRow> rows =
        predict(table_of(std::string(kRun) + "measured.peak_memory,measured.memory_figure",
                         {run_with({"30GB", figure})}),
                {});
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].metric, "memory_bytes");
    predicted.push_back(rows[0].predicted.value_or(0));
  }
  EXPECT_LT(predicted[0], predicted[1]);
  EXPECT_LT(predicted[1], predicted[2]);
}

TEST(OwnRowsTest, ACellThatIsNotUnderstoodSkipsItsRowAlone) {
  const CsvTable table =
      table_of(std::string(kRun) + "measured.step_time,plan.tpp,colour,measured.speed",
               {run_with({"400ms", "", "", ""}), run_with({"400ms", "2", "", ""}),
                run_with({"400ms", "", "red", ""}), run_with({"400ms", "", "", "4"}),
                run_with({"soon", "", "", ""}), run_with({"", "", "", ""})});
  const std::vector<AccuracyRow> rows = predict(table, {});
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0].skipped, "");
  EXPECT_NE(rows[1].skipped.find("tpp"), std::string::npos) << rows[1].skipped;
  EXPECT_NE(rows[2].skipped.find("colour: is no column of measured runs"), std::string::npos);
  EXPECT_NE(rows[3].skipped.find("measured.speed: is nothing that is measured"), std::string::npos);
  EXPECT_EQ(rows[4].skipped, "measured.step_time: must be a time above 0: 1.5s, is \"soon\"");
  EXPECT_NE(rows[5].skipped.find("nothing was measured"), std::string::npos);
}

// As --set refuses it.
TEST(OwnRowsTest, AKeyInAnotherGroupIsRefused) {
  const std::vector<AccuracyRow> rows = predict(
      table_of(std::string(kRun) + "measured.step_time,plan.loss", {run_with({"1s", "fused"})}),
      {});
  EXPECT_NE(rows[0].skipped.find("plan.loss: is a key of software"), std::string::npos)
      << rows[0].skipped;
}

// What a row would leave out is said.
TEST(OwnRowsTest, ARowIsServedOrAStep) {
  const char* const header = "model,cluster,requests,plan.tp,measured.step_time,measured.tpot_mean";
  const std::string requests = "closed:concurrency=4,count=8,input=64,output=8";
  const std::vector<AccuracyRow> rows =
      predict(table_of(header, {{"llama3-8b", "dgx-h100-8", requests, "4", "1s", "4ms"},
                                {"llama3-8b", "dgx-h100-8", requests, "4", "1s", ""}}),
              {});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_NE(rows[0].skipped.find("measured.*: must be of a served run"), std::string::npos);
  EXPECT_NE(rows[1].skipped.find("are of served runs"), std::string::npos) << rows[1].skipped;
}

// Without a name, all of the model stands in columns.
TEST(OwnRowsTest, AModelMayBeColumns) {
  const CsvTable table = table_of(
      "model,cluster,model.layers,model.hidden,model.intermediate,model.heads,model.kv_heads,"
      "model.head_dim,model.vocabulary,plan.dp,plan.global_batch,plan.sequence,measured.step_time",
      {{"", "dgx-h100-8", "2", "1024", "4096", "8", "8", "128", "32000", "8", "8", "1024",
        "10ms"}});
  const std::vector<AccuracyRow> rows = predict(table, {});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].skipped, "");
  EXPECT_EQ(rows[0].id, "t.csv:2");
}

TEST(OwnRowsTest, EveryTemplateIsATableOfItsKind) {
  for (const char* kind : {"training", "serving", "collectives", "kernels"}) {
    const std::string path = testing::TempDir() + "/own_rows_" + kind + ".csv";
    FILE* const file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    const std::string text(table_template(kind));
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
    const std::vector<AccuracyRow> rows = predict(read_csv(path), {});
    ASSERT_FALSE(rows.empty());
    for (const AccuracyRow& row : rows) {
      EXPECT_EQ(row.skipped, "") << kind;
      ASSERT_TRUE(row.predicted) << kind;
      EXPECT_LT(std::abs(row.relative_error()), 0.3) << kind << " " << row.metric;
    }
  }
  EXPECT_EQ(table_template("others"), "");
}

}  // namespace
}  // namespace stepsim
