#include "measured/accuracy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/run/simulate.h"

namespace stepsim {
namespace {

constexpr const char* kAllSources = "all";

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

std::string_view why_no_table() {
  return "has no column that begins with measured.: docs/measured-tables.md has the columns, and "
         "scripts/convert_tables.py converts tables of 0.1";
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
