#include "analysis/accuracy/accuracy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/accuracy/predict_collectives.h"
#include "analysis/accuracy/predict_kernels.h"
#include "analysis/accuracy/predict_own_rows.h"
#include "analysis/accuracy/predict_served_runs.h"
#include "analysis/accuracy/predict_serving_kernels.h"
#include "analysis/accuracy/predict_training_runs.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

constexpr const char* kAllSources = "all";

struct Header {
  TableKind kind;
  std::vector<std::string_view> columns;  // every column that the kind may have
};

const std::vector<Header>& headers() {
  static const std::vector<Header> kHeaders = {
      {TableKind::kTrainingRuns, {"model", "chip", "chip_count", "global_batch", "step_time_s"}},
      {TableKind::kCollectives, {"hardware", "op", "bytes", "ranks", "time_us"}},
      {TableKind::kKernels, {"hardware", "op", "m", "n", "k", "time_us"}},
      {TableKind::kServingCollectives,
       {"chip", "table", "op", "kernel", "num_gpus", "message_elements", "latency_ms"}},
      {TableKind::kServingKernels, {"chip", "table", "kernel", "dtype", "kv_dtype", "latency_ms"}},
      {TableKind::kServedRuns, {"model", "chip", "chips", "framework", "isl", "osl"}}};
  return kHeaders;
}

// Returns the smallest of the sorted values that at least `share` of them do not exceed (nearest
// rank).
double percentile(const std::vector<double>& sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

double median(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// The rows that a line sums up.
struct SummaryKey {
  std::string source_id;  // "all": those of every source
  std::string metric;
  bool under_specified = false;

  bool fits(const AccuracyRow& row) const {
    return (source_id == kAllSources || source_id == row.source_id) && metric == row.metric &&
           under_specified == (row.grade == "C");
  }
  bool operator==(const SummaryKey&) const = default;
};

AccuracySummary sum_up(const SummaryKey& key, const std::vector<AccuracyRow>& rows) {
  AccuracySummary summary{
      .source_id = key.source_id, .metric = key.metric, .under_specified = key.under_specified};
  std::vector<double> errors;
  double sum = 0;
  std::size_t with_interval = 0, covered = 0;
  for (const AccuracyRow& row : rows) {
    if (!key.fits(row)) continue;
    summary.skipped += row.predicted ? 0U : 1U;
    summary.implausible += row.implausible.empty() ? 0U : 1U;
    if (!row.predicted || !row.implausible.empty()) continue;
    if (row.interval) {
      ++with_interval;
      covered += row.interval->low <= row.measured && row.measured <= row.interval->high ? 1U : 0U;
    }
    sum += row.relative_error();
    errors.push_back(std::abs(row.relative_error()));
  }
  summary.rows = errors.size();
  if (with_interval > 0) {
    summary.covered = static_cast<double>(covered) / static_cast<double>(with_interval);
  }
  if (errors.empty()) return summary;
  std::ranges::sort(errors);
  summary.median_absolute_relative_error = median(errors);
  summary.p90_absolute_relative_error = percentile(errors, 0.9);
  summary.mean_relative_error = sum / static_cast<double>(errors.size());
  return summary;
}

}  // namespace

std::string_view name_of(TableKind kind) {
  switch (kind) {
    case TableKind::kOwnKeys:
      return "measured runs";
    case TableKind::kCollectives:
      return "collectives";
    case TableKind::kKernels:
      return "kernels";
    case TableKind::kServingKernels:
      return "serving kernels";
    case TableKind::kServingCollectives:
      return "serving collectives";
    case TableKind::kServedRuns:
      return "serving runs";
    case TableKind::kTrainingRuns:
      break;
  }
  return "training runs";
}

std::optional<TableKind> kind_of(const CsvTable& table) {
  if (is_in_own_keys(table)) return TableKind::kOwnKeys;
  for (const Header& header : headers()) {
    if (std::ranges::all_of(header.columns,
                            [&](std::string_view column) { return table.has(column); })) {
      return header.kind;
    }
  }
  return std::nullopt;
}

std::string missing_columns(const CsvTable& table) {
  const auto present = [&](const Header& header) {
    return std::ranges::count_if(header.columns,
                                 [&](std::string_view column) { return table.has(column); });
  };
  const auto share = [&](const Header& header) {
    return static_cast<double>(present(header)) / static_cast<double>(header.columns.size());
  };
  const Header& nearest = *std::ranges::max_element(headers(), {}, share);
  if (present(nearest) == 0) return {};
  std::string missing;
  for (const std::string_view column : nearest.columns) {
    if (!table.has(column)) missing += (missing.empty() ? "" : ", ") + std::string(column);
  }
  return "is nearest to a table of " + std::string(name_of(nearest.kind)) +
         ", but lacks the columns: " + missing;
}

std::string accepted_headers() {
  std::string text;
  for (const Header& header : headers()) {
    text += (text.empty() ? "" : "; ") + std::string(name_of(header.kind)) + ": ";
    for (const std::string_view column : header.columns) {
      text += (column == header.columns.front() ? "" : ", ") + std::string(column);
    }
  }
  return text;
}

std::vector<AccuracyRow> predict(const CsvTable& table, const std::vector<Hardware>& hardware,
                                 const PredictOptions& options) {
  switch (*kind_of(table)) {
    case TableKind::kOwnKeys:
      return predict_own_rows(table, options);
    case TableKind::kCollectives:
      return predict_collectives(table, hardware, options);
    case TableKind::kKernels:
      return predict_kernels(table, hardware, options);
    case TableKind::kServingCollectives:
      return predict_serving_collectives(table, hardware, options);
    case TableKind::kServingKernels:
      return predict_serving_kernels(table, hardware, options);
    case TableKind::kServedRuns:
      return predict_served_runs(table, hardware, options);
    case TableKind::kTrainingRuns:
      break;
  }
  return predict_training_runs(table, hardware, options);
}

std::vector<AccuracySummary> summarise(const std::vector<AccuracyRow>& rows) {
  std::vector<SummaryKey> keys;
  std::vector<SummaryKey> totals;
  const auto add = [](std::vector<SummaryKey>& to, SummaryKey key) {
    if (std::ranges::find(to, key) == to.end()) to.push_back(std::move(key));
  };
  for (const AccuracyRow& row : rows) {
    const bool under_specified = row.grade == "C";
    add(keys, {row.source_id, row.metric, under_specified});
    add(totals, {kAllSources, row.metric, under_specified});
  }
  std::ranges::stable_sort(totals, {}, &SummaryKey::under_specified);
  if (keys.size() > totals.size()) keys.insert(keys.end(), totals.begin(), totals.end());
  std::vector<AccuracySummary> summaries;
  for (const SummaryKey& key : keys) summaries.push_back(sum_up(key, rows));
  return summaries;
}

}  // namespace stepsim
