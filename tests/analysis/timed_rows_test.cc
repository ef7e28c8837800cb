// Tables of kernels and of collectives: docs/measured-tables.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "measured/accuracy.h"
#include "tests/support/reference_folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/written_table.h"

namespace stepsim {
namespace {

CsvTable reference(const std::string& name) {
  return read_csv((reference_folder() / "measured" / name).string());
}

std::vector<AccuracyRow> predicted(const std::string& text, const PredictOptions& options = {}) {
  return predict(read_csv(write_table("timed.csv", text)), options);
}

// Each row has a reason that begins so.
void expect_reasons(const std::vector<AccuracyRow>& rows, const std::vector<std::string>& reasons) {
  ASSERT_EQ(rows.size(), reasons.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].skipped.substr(0, reasons[i].size()), reasons[i]) << i;
    EXPECT_EQ(rows[i].predicted.has_value(), reasons[i].empty()) << i;
  }
}

constexpr const char* kKernelColumns = "chip,op,shape,dtype,measured.time\n";
constexpr const char* kCollectiveColumns =
    "cluster,library,op,ranks,nodes,bytes,shape,dtype,algorithm,measured.time\n";

// The rows are a sample of the table that the constants are fitted to, 16 to 24 of each library and
// type. `stepsim accuracy` has the errors of the whole table; asked are medians of 8 % for
// attention and 10 % for experts.
TEST(KernelRowsTest, ServingKernelsAreNearWhatTheirTableSays) {
  const CsvTable table = reference("serving_kernels.csv");
  std::map<std::string, std::vector<AccuracyRow>> groups;
  const std::vector<AccuracyRow> rows = predict(table, {});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_TRUE(rows[i].predicted) << rows[i].id << ": " << rows[i].skipped;
    AccuracyRow row = rows[i];
    row.source_id = table.at(i, "op");
    groups[row.source_id + " " + row.chip].push_back(row);
  }
  EXPECT_EQ(groups.size(), 6U);
  for (const auto& [name, of_group] : groups) {
    const AccuracySummary summary = summarise(of_group).front();
    EXPECT_LT(summary.median_absolute_relative_error, name.starts_with("experts") ? 0.10 : 0.08)
        << name;
    EXPECT_LT(std::abs(summary.mean_relative_error), 0.06) << name;
  }
}

TEST(KernelRowsTest, WhatCantBeTimedSaysWhy) {
  const std::string decode = "\"batch=4,heads=32,kv_heads=8,seq_q=1,seq_kv=1024,head_dim=128,";
  const std::string experts =
      "\"tokens=64,hidden=4096,intermediate=1536,top_k=8,experts=128,library=triton,";
  expect_reasons(
      predicted(
          std::string(kKernelColumns) + "h100-sxm,decode_attention," + decode +
          "cache_dtype=fp8,library=vllm\",bf16,20us\n" +
          "h200-sxm,latent_decode,\"batch=4,heads=16,seq_q=1,seq_kv=1024,library=trtllm\",bf16,"
          "20us\n" +
          "b200,experts," + experts + "ep=4\",bf16,20us\n" + "h100-sxm,experts," + experts +
          "ep=4,routing=power_law:1.2\",bf16,20us\n" + "h100-sxm,experts," + experts +
          "ep=4,routing=zipf\",bf16,20us\n" + "h100-sxm,experts," + experts + "ep=3\",bf16,20us\n" +
          "h100-sxm,decode_attention," + decode + "cache_dtype=fp6\",bf16,20us\n" +
          "h100-sxm,decode_attention," + decode + "library=other\",bf16,20us\n" +
          "h100-sxm,softmax,\"m=1,n=1\",bf16,20us\n" +
          "h100-sxm,gemm,\"m=many,n=64,k=64\",bf16,20us\n" +
          "h100-sxm,gemm,\"m=64,n=64\",bf16,20us\n" +
          "h100-sxm,gemm,\"m=64,n=64,k=64\",half,20us\n" +
          "h100-sxm,gemm,\"m=64,n=64,k=64\",nvfp4,20us\n" +
          "h100-sxm,gemm,\"m=1000000,n=1000000,k=1000000\",bf16,20us\n" +
          "abacus,gemm,\"m=64,n=64,k=64\",bf16,20us\n" +
          "h100-sxm,attention,\"heads=32,kv_heads=5,seq_q=64,seq_kv=64,head_dim=64\",bf16,20us\n"),
      {"", "", "b200 has no such kernel of triton", "", "shape: routing must be balanced",
       "shape: ep must divide experts", "shape: cache_dtype: must be",
       "h100-sxm has no such kernel of other", "op: must be gemm, attention",
       "shape: m must be a whole number, 1 or more, is \"many\"", "shape: k must be given",
       "dtype: must be", "h100-sxm does not compute in nvfp4",
       "shape: the product of the sizes must be at most 2^55", "chip: no chip",
       "shape: kv_heads must divide heads"});
}

// Weights of 8 bits are half as many bytes to read as those of 16: a matmul of one row is bound by
// them. 64 MB at most at 2,039 GB/s x 0.81 is 41 us.
TEST(KernelRowsTest, MatmulsMayHaveNarrowerWeights) {
  const std::string shape = "a100-sxm-80gb,gemm,\"m=1,n=8192,k=8192";
  const std::vector<AccuracyRow> rows =
      predicted(kKernelColumns + shape + ",weight_dtype=int8\",bf16,50us\n" + shape +
                ",weight_dtype=int4\",bf16,35us\n" + shape + "\",bf16,90us\n");
  for (const AccuracyRow& row : rows) ASSERT_TRUE(row.predicted) << row.skipped;
  EXPECT_GT(*rows[0].predicted, 41e-6);
  EXPECT_LT(*rows[0].predicted, 0.75 * *rows[2].predicted);
  EXPECT_LT(*rows[1].predicted, *rows[0].predicted);
}

// H100 makes narrow of 16-bit inputs by a kernel of 9 us and more.
TEST(KernelRowsTest, InputsMayBeRoundedBefore) {
  const std::string shape = "h100-sxm,gemm,\"m=4096,n=4096,k=4096";
  const std::vector<AccuracyRow> rows = predicted(kKernelColumns + shape + "\",fp8,120us\n" +
                                                  shape + ",inputs=rounded\",fp8,110us\n");
  ASSERT_TRUE(rows[0].predicted && rows[1].predicted);
  EXPECT_GT(*rows[0].predicted, *rows[1].predicted + 9e-6);
}

// Published timings of attention in training, by library. Short kernels are left out of the tail:
// those of Python's benchmarks wait for their launches.
TEST(KernelRowsTest, AttentionOfTrainingIsNearWhatWasMeasured) {
  const std::vector<AccuracyRow> rows = predict(reference("attention_training.csv"), {});
  ASSERT_EQ(rows.size(), 92U);
  for (const AccuracyRow& row : rows) {
    ASSERT_TRUE(row.predicted) << row.skipped;
    if (row.measured < 1e-3) continue;
    EXPECT_NEAR(*row.predicted / row.measured, 1, 0.14) << row.id;
  }
  const std::vector<AccuracySummary> all = summarise(rows);
  EXPECT_EQ(all.back().source_id, "all");
  EXPECT_LT(all.back().median_absolute_relative_error, 0.05);
}

TEST(KernelRowsTest, AttentionOfAnUnknownLibraryIsSkipped) {
  const std::string shape =
      "b200,attention_causal,\"heads=128,kv_heads=8,seq_q=8192,seq_kv=8192,head_dim=128,library=";
  const std::vector<AccuracyRow> rows =
      predicted(kKernelColumns + shape + "flash2\",bf16,5499us\n" + shape +
                "cudnn\",bf16,1877us\n" + shape + "flash9\",bf16,1877us\n");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_GT(*rows[0].predicted, 2.5 * *rows[1].predicted);
  EXPECT_EQ(rows[2].skipped.substr(0, 23), "shape: library must be ");
}

TEST(CollectiveRowsTest, WhatCannotBeSimulatedSaysWhy) {
  const std::vector<AccuracyRow> rows =
      predicted(std::string(kCollectiveColumns) +
                "dgx-h100-8,,all_reduce,8,,1048576,,fp16,,30us\n"
                "dgx-h100-8,,moe_dispatch,8,,1048576,,fp16,,30us\n"
                "abacus-8,,all_reduce,8,,1048576,,fp16,,30us\n"
                "dgx-h100-8,,all_reduce,16,,1048576,,fp16,,30us\n"
                "dgx-h100-16,,all_reduce,16,3,1048576,,fp16,,30us\n"
                "dgx-h100-16,,all_reduce,18,2,1048576,,fp16,,30us\n"
                "dgx-h100-8,,all_reduce,8,,many,,fp16,,30us\n"
                "dgx-h100-8,,all_reduce,1,,1MiB,,fp16,,30us\n"
                "dgx-h100-8,,all_reduce,8,,1MiB,,half,,30us\n"
                "dgx-h100-8,,all_reduce,8,,1MiB,tokens=1,fp16,,30us\n"
                "dgx-h100-8,,all_reduce,8,,1MiB,,fp16,circle,30us\n"
                "dgx-h100-8,abacus,all_reduce,8,,1MiB,,fp16,,30us\n"
                "dgx-h100-8,,all_reduce,8,,1MiB,,fp16,,30us\n");
  expect_reasons(
      rows, {"", "op: must be all_reduce", "cluster", "ranks: are more than the chips",
             "nodes: must divide the ranks", "nodes: 18 ranks in 2 nodes", "bytes: must be a size",
             "ranks: must be 2", "dtype: must be", "shape: is of dispatch",
             "algorithm: there is none called circle", "cluster.library", ""});
  EXPECT_EQ(rows[12].predicted, rows[0].predicted) << "a size may have a unit";
  EXPECT_EQ(rows[0].chip, "h100-sxm");
}

// Two ranks of each of two nodes meet over the network, four of one node over NVLink.
TEST(CollectiveRowsTest, RanksAreTheFirstOfEachNode) {
  const std::vector<AccuracyRow> rows = predicted(std::string(kCollectiveColumns) +
                                                  "dgx-h100-16,,all_gather,4,2,64MiB,,fp16,,1ms\n"
                                                  "dgx-h100-16,,all_gather,4,,64MiB,,fp16,,1ms\n");
  ASSERT_TRUE(rows[0].predicted && rows[1].predicted);
  EXPECT_GT(*rows[0].predicted, 2 * *rows[1].predicted);
}

TEST(CollectiveRowsTest, ServingCollectivesAreNearWhatTheirTableSays) {
  const std::vector<AccuracyRow> rows = predict(reference("serving_collectives.csv"), {});
  EXPECT_EQ(rows.size(), 336U);
  for (const AccuracyRow& row : rows) EXPECT_TRUE(row.predicted) << row.id << row.skipped;
  for (const AccuracySummary& summary : summarise(rows)) {
    EXPECT_LT(summary.median_absolute_relative_error, 0.08) << summary.source_id;
    EXPECT_LT(std::abs(summary.mean_relative_error), 0.08) << summary.source_id;
  }
}

TEST(CollectiveRowsTest, LibrariesOfServingHaveKernelsOfTheirOwn) {
  const std::string vllm = "dgx-h100-8,vllm-0.24-hopper,all_reduce,8,,";
  const std::string deepep = "dgx-h100-8,sglang-0.5-hopper,";
  const std::string tokens = ",\"tokens=64,hidden=7168,top_k=8,experts=256";
  const std::vector<AccuracyRow> rows = predicted(
      kCollectiveColumns + vllm + "8KiB,,bf16,,5us\n" + vllm + "64MiB,,bf16,,300us\n" +
      "dgx-h100-8,,all_reduce,8,,64MiB,,bf16,,300us\n" +  //
      deepep + "dispatch,8,," + tokens + "\",,,20us\n" +  //
      deepep + "bulk_combine,8,," + tokens + ",units=24\",,,60us\n" + deepep + "bulk_combine,8,," +
      tokens + "\",,,60us\n" + deepep + "dispatch,8,," + tokens + ",units=24\",,,20us\n" + deepep +
      "dispatch,8,,1MiB" + tokens + "\",,,20us\n" + deepep + "dispatch,16,," + tokens +
      "\",,,20us\n" + "dgx-h100-8,,dispatch,8,," + tokens + "\",,,20us\n" + deepep +
      "dispatch,8,,,\"tokens=0,hidden=7168,top_k=8,experts=256\",,,20us\n");
  ASSERT_EQ(rows.size(), 11U);
  ASSERT_TRUE(rows[0].predicted) << rows[0].skipped;
  // 8 kB among eight: 4.29 + 2 x 0.22 us, and 7 x 8,192 bytes at 259 GB/s.
  EXPECT_NEAR(*rows[0].predicted, 4.95e-6, 0.02e-6);
  EXPECT_EQ(rows[1].predicted, rows[2].predicted) << "large ones are NCCL's";
  EXPECT_EQ(rows[3].metric, "dispatch_s");
  EXPECT_EQ(rows[4].metric, "combine_s");
  for (const std::size_t i : {3U, 4U, 5U}) ASSERT_TRUE(rows[i].predicted) << rows[i].skipped;
  EXPECT_LT(*rows[4].predicted, *rows[5].predicted) << "DeepEP's 20 units";
  const std::vector<std::string> reasons = {
      "shape: has \"units=24\"", "bytes: must be empty", "ranks: are more than the chips of a node",
      "nccl-2.29-hopper has no such kernel", "shape: tokens must be a whole number"};
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    EXPECT_EQ(rows[i + 6].skipped.substr(0, reasons[i].size()), reasons[i]);
  }
}

// The bounds that the catalog's libraries keep on the tables to which they are fitted. For every
// chip the median error is below 8 % and the 90th percentile below 20 %. For every operation and
// number of ranks of a chip they are below 8 % and 23 %, except for all-to-alls of 8 ranks, where
// single rows of the tables are twice their neighbours (docs/accuracy-reasons.md).
TEST(CollectiveRowsTest, CollectivesInsideANodeAreNearWhatNcclTestsMeasure) {
  const CsvTable table = reference("collectives.csv");
  const std::vector<AccuracyRow> rows = predict(table, {});
  ASSERT_EQ(rows.size(), 943U);
  for (const char* chip : {"a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200", "gb200"}) {
    std::vector<AccuracyRow> of_chip;
    for (const AccuracyRow& row : rows) {
      if (row.chip == chip) of_chip.push_back(row);
    }
    const AccuracySummary summary = summarise(of_chip).front();
    EXPECT_GT(summary.rows, 130U) << chip;
    EXPECT_EQ(summary.skipped, 0U) << chip;
    EXPECT_LT(summary.median_absolute_relative_error, 0.08) << chip;
    EXPECT_LT(summary.p90_absolute_relative_error, 0.20) << chip;
    EXPECT_LT(std::abs(summary.mean_relative_error), 0.04) << chip;
  }
  std::map<std::string, std::vector<AccuracyRow>> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    groups[rows[i].chip + " " + std::string(table.at(i, "op")) + " " +
           std::string(table.at(i, "ranks"))]
        .push_back(rows[i]);
  }
  EXPECT_EQ(groups.size(), 56U);
  for (const auto& [name, of_group] : groups) {
    const AccuracySummary summary = summarise(of_group).front();
    EXPECT_LT(summary.median_absolute_relative_error, 0.08) << name;
    if (name.ends_with("all_to_all 8")) continue;
    EXPECT_LT(summary.p90_absolute_relative_error, 0.33) << name;
  }
  // The ideal library models none of that, so it is far off, as textbook estimates are.
  EXPECT_GT(summarise(predict(table, {.library = "ideal"})).front().median_absolute_relative_error,
            0.3);
}

// Rows of published nccl-tests over InfiniBand and RoCE, and of groups in an NVL72 rack.
TEST(CollectiveRowsTest, CollectivesBetweenNodesAreNearWhatWasMeasured) {
  const CsvTable table = reference("collectives_between_nodes.csv");
  const std::vector<AccuracyRow> rows = predict(table, {});
  ASSERT_EQ(rows.size(), 391U);
  std::map<std::string, std::vector<double>> errors;
  for (std::size_t record = 0; record < rows.size(); ++record) {
    ASSERT_TRUE(rows[record].predicted) << rows[record].skipped;
    const std::string kind =
        table.at(record, "nodes").empty() ? "rack " + std::string(table.at(record, "op")) : "nodes";
    errors[kind].push_back(std::abs(*rows[record].predicted / rows[record].measured - 1));
  }
  const std::map<std::string, double> medians = {{"nodes", 0.06},
                                                 {"rack all_to_all", 0.12},
                                                 {"rack all_gather", 0.09},
                                                 {"rack reduce_scatter", 0.1},
                                                 {"rack all_reduce", 0.3}};
  for (const auto& [kind, most] : medians) {
    std::vector<double>& of_kind = errors[kind];
    ASSERT_GT(of_kind.size(), 40U) << kind;
    std::ranges::nth_element(of_kind, of_kind.begin() + std::ssize(of_kind) / 2);
    EXPECT_LT(of_kind[of_kind.size() / 2], most) << kind;
  }
}

}  // namespace
}  // namespace stepsim
