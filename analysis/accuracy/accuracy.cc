#include "analysis/accuracy/accuracy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/accuracy/predict_collectives.h"
#include "analysis/accuracy/predict_kernels.h"
#include "analysis/accuracy/predict_training_runs.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

struct Header {
  TableKind kind;
  std::vector<std::string_view> columns;  // every column that the kind may have
};

const std::vector<Header>& headers() {
  static const std::vector<Header> kHeaders = {
      {TableKind::kTrainingRuns, {"model", "chip", "chip_count", "global_batch", "step_time_s"}},
      {TableKind::kCollectives, {"hardware", "op", "bytes", "ranks", "time_us"}},
      {TableKind::kKernels, {"hardware", "op", "m", "n", "k", "time_us"}}};
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

AccuracySummary sum_up(const std::string& source, const std::string& metric,
                       const std::vector<const AccuracyRow*>& rows) {
  AccuracySummary summary{.source_id = source, .metric = metric};
  std::vector<double> errors;
  double sum = 0;
  for (const AccuracyRow* row : rows) {
    if (!row->predicted) {
      ++summary.skipped;
      continue;
    }
    sum += row->relative_error();
    errors.push_back(std::abs(row->relative_error()));
  }
  summary.rows = errors.size();
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
    case TableKind::kCollectives:
      return "collectives";
    case TableKind::kKernels:
      return "kernels";
    case TableKind::kTrainingRuns:
      break;
  }
  return "training runs";
}

std::optional<TableKind> kind_of(const CsvTable& table) {
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
    case TableKind::kCollectives:
      return predict_collectives(table, hardware, options);
    case TableKind::kKernels:
      return predict_kernels(table, hardware, options);
    case TableKind::kTrainingRuns:
      break;
  }
  return predict_training_runs(table, hardware, options);
}

std::vector<AccuracySummary> summarise(const std::vector<AccuracyRow>& rows) {
  std::vector<std::pair<std::string, std::string>> keys;
  std::vector<std::string> metrics;
  for (const AccuracyRow& row : rows) {
    const std::pair key(row.source_id, row.metric);
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    if (std::ranges::find(metrics, row.metric) == metrics.end()) metrics.push_back(row.metric);
  }
  const auto chosen = [&rows](const auto& wanted) {
    std::vector<const AccuracyRow*> result;
    for (const AccuracyRow& row : rows) {
      if (wanted(row)) result.push_back(&row);
    }
    return result;
  };
  std::vector<AccuracySummary> summaries;
  for (const auto& key : keys) {
    summaries.push_back(sum_up(key.first, key.second, chosen([&](const AccuracyRow& row) {
                                 return std::pair(row.source_id, row.metric) == key;
                               })));
  }
  if (keys.size() == metrics.size()) return summaries;
  for (const std::string& metric : metrics) {
    summaries.push_back(sum_up(
        "all", metric, chosen([&](const AccuracyRow& row) { return row.metric == metric; })));
  }
  return summaries;
}

const Hardware* find_hardware(const std::vector<Hardware>& hardware, std::string_view name) {
  for (const Hardware& entry : hardware) {
    if (std::ranges::find(entry.names, name) != entry.names.end()) return &entry;
  }
  return nullptr;
}

}  // namespace stepsim
