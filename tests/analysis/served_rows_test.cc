// Tables of served runs: docs/measured-tables.md.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "measured/accuracy.h"
#include "measured/run_rows.h"
#include "measured/served_run.h"
#include "proto/load_experiment.h"
#include "sim/base/error.h"
#include "tests/support/reference_folder.h"
#include "tests/support/written_table.h"

namespace stepsim {
namespace {

using namespace literals;

constexpr const char* kServedColumns =
    "id,model,cluster,software,engine,replicas,prefill,decode,requests,plan.tp,plan.dtype,"
    "measured.tpot_mean\n";
const std::string kLoop = "\"closed:concurrency=2,count=8,input=64,output=8\"";

// A row of Llama-3.1 8B on H100, with these cells between the cluster and the requests.
std::string row_with(const std::string& between, const std::string& tp = "1") {
  return "a,llama3.1-8b,dgx-h100-8," + between + "," + kLoop + "," + tp + ",bf16,10ms\n";
}

CsvTable served_table(const std::string& rows) {
  return read_csv(write_table("served.csv", kServedColumns + rows));
}

std::vector<double> tpot_of(const CsvTable& table, const PredictOptions& options) {
  std::vector<double> values;
  for (const AccuracyRow& row : predict(table, options)) {
    EXPECT_TRUE(row.predicted) << row.skipped;
    values.push_back(row.predicted.value_or(0));
  }
  return values;
}

ServedRun read_served(const std::string& row, const PredictOptions& options) {
  const CsvTable table = served_table(row);
  ServedRunReader reader(options);
  ServedRun run = reader.read(read_run_row(table, 0));
  reader.change_engines(run);
  return run;
}

// A sample of published runs of Llama-3.1-8B, Qwen3-32B and gpt-oss-120b. Docs/accuracy.md
// has the errors of whole tables.
TEST(ServedRowsTest, ServedRunsAreNearWhatWasMeasured) {
  const CsvTable table = read_csv((reference_folder() / "measured" / "serving_runs.csv").string());
  std::vector<AccuracyRow> tpot;
  for (AccuracyRow row : predict(table, {.threads = 2})) {
    EXPECT_TRUE(row.predicted) << row.id << ": " << row.skipped;
    row.source_id = "sample";
    if (row.metric == "tpot_mean_s") tpot.push_back(row);
  }
  const AccuracySummary summary = summarise(tpot).front();
  EXPECT_EQ(summary.rows, table.records.size());
  EXPECT_LT(summary.median_absolute_relative_error, 0.12);
  EXPECT_LT(summary.p90_absolute_relative_error, 0.35);
}

TEST(ServedRowsTest, SoftwareBringsWhatARowLeavesOpen) {
  const ServedRun vllm = read_served(row_with("vllm,,,,"), {});
  EXPECT_EQ(vllm.options.replicas.engine->name, "vllm");
  EXPECT_EQ(vllm.options.replicas.options.host.front_time, 25ms);
  EXPECT_EQ(vllm.plan.library, "vllm-0.24-hopper");
  const ServedRun given = read_served(row_with("vllm,\"vllm,front-time=1ms\",,,"), {});
  EXPECT_EQ(given.options.replicas.options.host.front_time, 1ms);
  const ServedRun other = read_served(row_with("vllm,static,,,"), {});
  EXPECT_EQ(other.options.replicas.options.host.front_time, Duration());
  EXPECT_EQ(read_served(row_with("vllm,,,,"), {.library = "ideal"}).plan.library, "ideal");
  EXPECT_EQ(read_served(row_with(",,,,"), {}).plan.library, "");
}

TEST(ServedRowsTest, ReplicasMayBeApart) {
  const ServedRun run =
      read_served(row_with("vllm,,,\"workers=2,tp=4\",\"workers=1,tp=8,budget=4096\""), {});
  ASSERT_TRUE(run.decode && run.options.decode);
  EXPECT_EQ(run.options.replicas.count, 2);
  EXPECT_EQ(run.plan.keys, "dtype=bf16,tp=4");
  EXPECT_EQ(run.decode->keys, "dtype=bf16,tp=8");
  EXPECT_EQ(run.options.decode->options.batching.budget, 4096);
}

// The defaults of a release follow from the chip of the row, and are those of its engine alone.
TEST(ServedRowsTest, TheDefaultsOfARelease) {
  const auto options_of = [](const std::string& row, const std::string& engine) {
    return read_served(row, {.serving_engine = engine}).options.replicas.options;
  };
  const std::string h100 = row_with("vllm,,,,");
  const std::string trtllm = row_with("trtllm,,,,");
  const std::string l40s = "b,llama3.1-8b,pcie-l40s-8,vllm,,,,," + kLoop + ",1,bf16,10ms\n";
  EXPECT_EQ(options_of(h100, "vllm@0.11").batching.budget, 8192);
  EXPECT_EQ(options_of(h100, "vllm@0.11").batching.sequences, 1024);
  EXPECT_FALSE(options_of(h100, "vllm@0.11").cache.reserve_whole_sequence);
  EXPECT_TRUE(options_of(h100, "vllm@2026").cache.reserve_whole_sequence);
  EXPECT_EQ(options_of(h100, "vllm@0.11,budget=4096").batching.budget, 4096);
  EXPECT_EQ(options_of(row_with("vllm,vllm@0.11,,,"), "").batching.budget, 8192);
  EXPECT_EQ(options_of(l40s, "vllm@0.11").batching.budget, 2048);
  EXPECT_EQ(options_of(trtllm, "vllm@0.11,budget=4096").batching.budget,
            options_of(trtllm, "").batching.budget);
  EXPECT_THROW(options_of(h100, "vllm@0.3"), ConfigError);
}

TEST(ServedRowsTest, RowsThatCantBeServedSayWhy) {
  const std::string big = "f,llama3.1-405b,dgx-h100-8,vllm,,,,," + kLoop + ",1,bf16,10ms\n";
  const std::vector<AccuracyRow> rows =
      predict(served_table(row_with("vllm,,,,") + row_with("unheard-of,,,,") +
                           row_with("vllm,turbo,,,") + row_with("vllm,,0,,") +
                           row_with("vllm,,,workers=1,") + big + "g,,dgx-h100-8,vllm,,,,," + kLoop +
                           ",1,bf16,10ms\n" + "h,llama3.1-8b,,vllm,,,,," + kLoop +
                           ",1,bf16,10ms\n" + "i,llama3.1-8b,dgx-h100-8,vllm,,,,,,1,bf16,10ms\n" +
                           "j,llama3.1-8b,dgx-h100-8,vllm,,,,," + kLoop + ",1,bf16,soon\n" +
                           "k,no-such-model,dgx-h100-8,vllm,,,,," + kLoop + ",1,bf16,10ms\n"),
              {});
  const std::vector<std::string> reasons = {
      "",
      "software: must be vllm, sglang or trtllm of a served run, is \"unheard-of\"",
      "--engine: must begin with an engine",
      "replicas: must be a whole number",
      "prefill: must be given with decode",
      "memory: ",
      "model: must be given",
      "cluster: must be given",
      "requests: must be given",
      "measured.tpot_mean: must be a time",
      "model"};
  ASSERT_EQ(rows.size(), reasons.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].skipped.substr(0, reasons[i].size()), reasons[i]) << i;
    EXPECT_EQ(rows[i].predicted.has_value(), i == 0);
  }
}

TEST(ServedRowsTest, RowsTakeFurtherKeys) {
  const CsvTable table = served_table(row_with("vllm,,,,") + "b,gpt-oss-120b,dgx-h100-8,vllm,,,,," +
                                      kLoop + ",2,bf16,10ms\n");
  const std::vector<double> plain = tpot_of(table, {});
  EXPECT_NEAR(tpot_of(table, {.serving_engine = "host-time=1ms"})[0], plain[0] + 1e-3, 1e-9);
  const std::vector<double> spread = tpot_of(table, {.serving_plan = "expert_spread=1000"});
  EXPECT_EQ(spread[0], plain[0]) << "no experts";
  EXPECT_LT(spread[1], plain[1]);
  EXPECT_THROW(predict(table, {.serving_engine = "haste=1"}), ConfigError);
}

// A power limit lowers the clock; more replicas share the requests.
TEST(ServedRowsTest, RowsMayChangeTheClusterAndTheModel) {
  const std::string header =
      "model,cluster,requests,cluster.chip.power.limit_watts,model.layers,replicas,chips,"
      "measured.ttft_mean,measured.output_tokens_per_s_per_chip\n";
  const std::string row = "llama3.1-8b,dgx-h100-8,\"burst:count=8,input=4096,output=8\",";
  const std::vector<AccuracyRow> rows =
      predict(read_csv(write_table("changed.csv", header + row + ",,,,1s,9\n" + row +
                                                      "300,,,,1s,9\n" + row + ",16,,,1s,9\n" + row +
                                                      ",,2,,1s,9\n" + row + ",,2,8,1s,9\n")),
              {});
  ASSERT_EQ(rows.size(), 10U);
  for (const AccuracyRow& one : rows) ASSERT_TRUE(one.predicted) << one.skipped;
  EXPECT_GT(*rows[2].predicted, 1.05 * *rows[0].predicted);
  EXPECT_LT(*rows[4].predicted, 0.6 * *rows[0].predicted);
  EXPECT_LT(*rows[6].predicted, 0.6 * *rows[0].predicted);
  EXPECT_NEAR(*rows[9].predicted / *rows[7].predicted, 2.0 / 8, 1e-9) << "chips that it counts";
}

}  // namespace
}  // namespace stepsim
