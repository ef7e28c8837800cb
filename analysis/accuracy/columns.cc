#include "analysis/accuracy/columns.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "analysis/accuracy/accuracy.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

using Columns = std::vector<std::string>;

const Columns& columns_of_all_kinds() {
  static const Columns kColumns = {"id", "source_id", "source", "from_memory", "remarks"};
  return kColumns;
}

const Columns& columns_of_collectives() {
  static const Columns kColumns = {
      "hardware",   "nodes", "ranks",      "ranks_per_node", "op",      "bytes",  "time_us",
      "busbw_GBps", "algo",  "algbw_GBps", "dtype",          "library", "network"};
  return kColumns;
}

const Columns& columns_of_kernels() {
  static const Columns kColumns = {
      "hardware", "op",     "phase",        "dtype", "m",        "n",        "k",
      "batch",    "seq_q",  "seq_kv",       "heads", "kv_heads", "head_dim", "tp",
      "time_us",  "tflops", "gbytes_per_s", "stat",  "library"};
  return kColumns;
}

const Columns& columns_of_serving_collectives() {
  static const Columns kColumns = {
      "chip",       "split",         "table",        "framework", "version",          "op",
      "kernel",     "dtype",         "num_gpus",     "nodes",     "message_elements", "tokens",
      "hidden",     "topk",          "experts",      "sms",       "latency_ms",       "dispatch_us",
      "combine_us", "dispatch_gbps", "combine_gbps", "provenance"};
  return kColumns;
}

const Columns& columns_of_serving_kernels() {
  static const Columns kColumns = {
      "chip",     "split",  "table",        "framework",  "version",   "kernel",   "dtype",
      "kv_dtype", "batch",  "isl",          "step",       "heads",     "kv_heads", "head_dim",
      "window",   "tp",     "tokens",       "hidden",     "inter",     "topk",     "experts",
      "moe_tp",   "moe_ep", "distribution", "latency_ms", "provenance"};
  return kColumns;
}

const Columns& columns_of_served_runs() {
  static const Columns kColumns = {"split",
                                   "grade",
                                   "model",
                                   "model_id",
                                   "chip",
                                   "chips",
                                   "nodes",
                                   "mode",
                                   "framework",
                                   "framework_version",
                                   "precision",
                                   "kv_dtype",
                                   "spec_decode",
                                   "tp",
                                   "pp",
                                   "ep",
                                   "attention_dp",
                                   "moe_tp",
                                   "prefill_workers",
                                   "prefill_tp",
                                   "prefill_ep",
                                   "prefill_dp",
                                   "prefill_chips",
                                   "decode_workers",
                                   "decode_tp",
                                   "decode_ep",
                                   "decode_dp",
                                   "decode_chips",
                                   "isl",
                                   "osl",
                                   "length_dist",
                                   "load",
                                   "concurrency",
                                   "batch",
                                   "request_rate_per_s",
                                   "num_requests",
                                   "output_tok_per_s",
                                   "total_tok_per_s",
                                   "output_tok_per_s_per_chip",
                                   "total_tok_per_s_per_chip",
                                   "ttft_mean_s",
                                   "ttft_median_s",
                                   "ttft_p99_s",
                                   "tpot_mean_s",
                                   "tpot_median_s",
                                   "tpot_p99_s",
                                   "itl_mean_s",
                                   "itl_median_s",
                                   "itl_p99_s",
                                   "e2e_mean_s",
                                   "e2e_median_s",
                                   "e2e_p99_s",
                                   "date",
                                   "provenance"};
  return kColumns;
}

const Columns& columns_of_runs() {
  static const Columns kColumns = {"chip",
                                   "chip_count",
                                   "chips_per_node",
                                   "intra_node",
                                   "inter_node",
                                   "model",
                                   "params_b",
                                   "layers",
                                   "hidden",
                                   "ffn",
                                   "heads",
                                   "kv_heads",
                                   "head_dim",
                                   "vocab",
                                   "seq_len",
                                   "gated_mlp",
                                   "moe",
                                   "moe_detail",
                                   "attention",
                                   "global_batch",
                                   "micro_batch",
                                   "num_microbatches",
                                   "tp",
                                   "pp",
                                   "dp",
                                   "cp",
                                   "ep",
                                   "virtual_stages",
                                   "schedule",
                                   "zero_stage",
                                   "sequence_parallel",
                                   "recompute",
                                   "dtype",
                                   "overlap",
                                   "software",
                                   "release",
                                   "power_limit",
                                   "other_metrics"};  // it may name dispatchers and capacities
  return kColumns;
}

// They say where a run comes from and what was measured.
const Columns& columns_about_runs() {
  static const Columns kColumns = {"source_ref",
                                   "source_locator",
                                   "step_time_s",
                                   "tflops_per_gpu",
                                   "mfu",
                                   "tokens_per_s",
                                   "tokens_per_s_per_gpu",
                                   "memory_gb",
                                   "flops_convention",
                                   "metric_origin",
                                   "spec_grade",
                                   "split"};
  return kColumns;
}

// Returns every column that a table of the kind may have.
Columns columns_of(TableKind kind) {
  Columns all = columns_of_all_kinds();
  const auto add = [&all](const Columns& more) { all.insert(all.end(), more.begin(), more.end()); };
  switch (kind) {
    case TableKind::kCollectives:
      add(columns_of_collectives());
      break;
    case TableKind::kKernels:
      add(columns_of_kernels());
      break;
    case TableKind::kServingCollectives:
      add(columns_of_serving_collectives());
      break;
    case TableKind::kServingKernels:
      add(columns_of_serving_kernels());
      break;
    case TableKind::kServedRuns:
      add(columns_of_served_runs());
      break;
    case TableKind::kOwnKeys:
      break;
    case TableKind::kTrainingRuns:
      add(columns_of_runs());
      add(columns_about_runs());
      break;
  }
  return all;
}

}  // namespace

std::vector<std::string> unknown_columns(const CsvTable& table) {
  if (kind_of(table) == TableKind::kOwnKeys)
    return {};  // a cell that is not read is a problem of its row
  const Columns known = columns_of(*kind_of(table));
  std::vector<std::string> unknown;
  for (const std::string& column : table.header) {
    if (std::ranges::count(known, column) > 0) continue;
    unknown.push_back("\"" + column + "\"" + did_you_mean(column, known));
  }
  return unknown;
}

bool describes_run(std::string_view column) {
  return std::ranges::count(columns_of_all_kinds(), column) == 0 &&
         std::ranges::count(columns_about_runs(), column) == 0;
}

bool is_blank(std::string_view text) {
  constexpr std::array<std::string_view, 5> kWords = {"", "-", "?", "n/a", "N/A"};
  return std::ranges::count(kWords, text) > 0 || text.starts_with("unknown") ||
         text.starts_with("not stated");
}

}  // namespace stepsim
