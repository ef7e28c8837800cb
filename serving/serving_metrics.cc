#include "serving/serving_metrics.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace stepsim {
namespace {

constexpr std::int64_t kHundred = 100;

// The position from 0 of the nearest rank.
std::int64_t rank_of(std::int64_t count, std::int64_t percent) {
  return (count * percent + kHundred - 1) / kHundred - 1;
}

// Sums of many long times pass 64 bits.
class MeanOf {
 public:
  void add(Duration value, std::int64_t count = 1) {
    sum_ += Wide{value.count()} * count;
    count_ += count;
  }
  Duration mean() const {
    return Duration(count_ == 0 ? 0 : static_cast<std::int64_t>(sum_ / count_));
  }

 private:
  __extension__ typedef __int128 Wide;
  Wide sum_ = 0;
  std::int64_t count_ = 0;
};

TimeSpread spread_of_gaps(GapCounts& gaps) {
  TimeSpread spread;
  MeanOf mean;
  for (const GapCounts::Count& count : gaps.sorted()) {
    spread.count += count.count;
    mean.add(count.gap, count.count);
  }
  spread.mean = mean.mean();
  const auto at = [&](std::int64_t percent) {
    std::int64_t left = rank_of(spread.count, percent);
    for (const GapCounts::Count& count : gaps.sorted()) {
      if (left < count.count) return count.gap;
      left -= count.count;
    }
    return Duration();
  };
  spread.p50 = at(50);
  spread.p90 = at(90);
  spread.p99 = at(99);
  return spread;
}

void sum_parts(const std::array<MeanOf, kRequestParts>& sums, ServingMetrics& metrics) {
  for (std::size_t i = 0; i < kRequestParts; ++i) metrics.parts[i] = sums[i].mean();
  const Duration sum = std::accumulate(metrics.parts.begin(), metrics.parts.end(), Duration());
  *std::max_element(metrics.parts.begin(), metrics.parts.end()) += metrics.end_to_end.mean - sum;
}

}  // namespace

bool ServiceObjective::is_met_by(const RequestRecord& record) const {
  if (ttft && record.time_to_first_token() > *ttft) return false;
  if (tpot && record.tokens > 1 && record.time_per_output_token() > *tpot) return false;
  return !end_to_end || record.end_to_end() <= *end_to_end;
}

TimeSpread spread_of(std::vector<Duration>& values) {
  TimeSpread spread{.count = static_cast<std::int64_t>(values.size())};
  if (values.empty()) return spread;
  MeanOf mean;
  for (const Duration value : values) mean.add(value);
  spread.mean = mean.mean();
  const auto at = [&](std::int64_t percent) {
    const auto nth = values.begin() + rank_of(spread.count, percent);
    std::nth_element(values.begin(), nth, values.end());
    return *nth;
  };
  spread.p50 = at(50);
  spread.p90 = at(90);
  spread.p99 = at(99);
  return spread;
}

double ServingMetrics::per_second(std::int64_t count) const {
  return length == Duration() ? 0 : static_cast<double>(count) / to_seconds(length);
}

ServingMetrics metrics_of(const RequestList& list, ServingResult& result,
                          const ServiceObjective& objective, const RequestFilter& filter) {
  ServingMetrics metrics;
  std::vector<Duration> first_tokens;
  std::vector<Duration> tokens;
  std::vector<Duration> whole;
  std::array<MeanOf, kRequestParts> parts{};
  std::optional<Time> first;
  Time last;
  for (std::size_t i = 0; i < list.requests.size(); ++i) {
    if (!filter.takes(list, list.requests[i])) continue;
    const RequestRecord& record = result.requests[RequestId(static_cast<std::uint32_t>(i))];
    ++metrics.requests;
    metrics.output_tokens += record.tokens;
    first = std::min(first.value_or(record.arrival), record.arrival);
    last = std::max(last, record.last_token);
    first_tokens.push_back(record.time_to_first_token());
    if (record.tokens > 1) tokens.push_back(record.time_per_output_token());
    whole.push_back(record.end_to_end());
    if (objective.is_met_by(record)) ++metrics.good_requests;
    for (std::size_t part = 0; part < kRequestParts; ++part) parts[part].add(record.parts[part]);
  }
  if (first) metrics.length = last - *first;
  metrics.ttft = spread_of(first_tokens);
  metrics.tpot = spread_of(tokens);
  metrics.end_to_end = spread_of(whole);
  if (filter.is_everything()) metrics.inter_token = spread_of_gaps(result.gaps);
  sum_parts(parts, metrics);
  return metrics;
}

}  // namespace stepsim
