#include "pages/run/memory_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pages/run/run_drawings.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostRanks = 16;
constexpr std::size_t kMostSamples = 6'400;  // of all curves

Bytes total_of(const MemoryBytes& bytes) {
  Bytes total;
  for (const Bytes one : bytes) total += one;
  return total;
}

// Keeps, of each of `bins` equal parts of the run, the sample with most.
std::vector<MemorySample> thinned_samples(const std::vector<MemorySample>& samples, Duration whole,
                                          std::size_t bins) {
  if (samples.size() <= bins) return samples;
  const Duration width = whole / static_cast<std::int64_t>(bins) + Duration(1);
  std::vector<MemorySample> kept;
  std::int64_t bin = -1;
  for (const MemorySample& sample : samples) {
    const std::int64_t its = sample.at.since_start.count() / width.count();
    if (its != bin) {
      kept.push_back(sample);
    } else if (total_of(sample.bytes) > total_of(kept.back().bytes)) {
      kept.back() = sample;
    }
    bin = its;
  }
  return kept;
}

// "0 to 19, 40 to 59".
std::string ranges_of(const std::vector<std::int32_t>& ascending) {
  std::string text;
  for (std::size_t i = 0; i < ascending.size();) {
    std::size_t last = i;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += i == last ? fmt::format("{}", ascending[i])
                      : fmt::format("{} to {}", ascending[i], ascending[last]);
    i = last + 1;
  }
  return text;
}

// Layers by micro-batch that hold activations at an instant.
Json alive_at(const FinishedRun& run, const Timeline& timeline, Time at) {
  struct Life {
    Time from;
    Time to;
  };
  const Program& program =
      run.graph.programs[run.graph.ranks[timeline.rank.index()].program.index()];
  // By step, micro-batch and layer.
  std::map<std::pair<std::uint32_t, std::int32_t>, std::map<std::int32_t, Life>> lives;
  for (const TimelineOp& entry : timeline.ops) {
    const OpLabel& label = program.labels[entry.op];
    if (program.ops[entry.op].kind != OpKind::kCompute || !label.microbatch || !label.layer) {
      continue;
    }
    auto& layers = lives[{entry.step, *label.microbatch}];
    const auto [found, is_new] = layers.emplace(*label.layer, Life{entry.started, entry.ended});
    if (!is_new) found->second.to = std::max(found->second.to, entry.ended);
  }
  Json alive = Json::array();
  for (const auto& [place, layers] : lives) {
    std::vector<std::int32_t> held;
    for (const auto& [layer, life] : layers) {
      if (life.from <= at && at < life.to) held.push_back(layer);
    }
    if (held.empty()) continue;
    Json row = Json::object();
    row["microbatch"] = place.second;
    row["layers"] = ranges_of(held);
    row["count"] = held.size();
    alive.push_back(std::move(row));
  }
  return alive;
}

}  // namespace

Json memory_curves(const FinishedRun& run) {
  const SimulationResult& result = run.result;
  const Duration whole = result.end.since_start;
  const DrawnTime time(whole);
  std::vector<std::size_t> ranks = drawn_ranks(run, kMostRanks);
  const auto peak_of = [&](std::size_t recorded) -> const MemoryPeak& {
    return result.memory_peaks[result.recorded[recorded].rank.index()];
  };
  // The one that needs most of all stages comes first.
  const auto more = [&](std::size_t a, std::size_t b) {
    return peak_of(a).bytes < peak_of(b).bytes;
  };
  if (!ranks.empty())
    std::rotate(ranks.begin(), std::ranges::max_element(ranks, more), ranks.end());

  const Bytes capacity = run.cluster.chip.memory_capacity;
  std::int64_t largest = capacity.value();
  for (const MemoryPeak& peak : result.memory_peaks)
    largest = std::max(largest, peak.bytes.value());
  std::int64_t unit = 1;
  while (largest / unit > 1'000'000) unit *= 10;

  Json curves = Json::object();
  curves["tick_s"] = time.tick_s();
  curves["end"] = time.ticks(whole);
  curves["unit_bytes"] = unit;
  curves["capacity"] = capacity.value() / unit;
  curves["categories"] = Json::array();
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    const bool holds = std::ranges::any_of(ranks, [&](std::size_t recorded) {
      const Timeline& timeline = result.timelines[result.recorded[recorded].timeline];
      return std::ranges::any_of(
          timeline.memory, [i](const MemorySample& sample) { return sample.bytes[i] > Bytes(0); });
    });
    if (!holds) continue;
    used.push_back(i);
    curves["categories"].push_back(std::string(name_of(static_cast<MemoryCategory>(i))));
  }
  curves["ranks"] = Json::array();
  for (const std::size_t recorded : ranks) {
    const RankId rank = result.recorded[recorded].rank;
    const Timeline& timeline = result.timelines[result.recorded[recorded].timeline];
    const std::vector<MemorySample> samples =
        thinned_samples(timeline.memory, whole, kMostSamples / ranks.size());
    Json one = Json::object();
    one["name"] = fmt::format(
        "{} (rank {})", name_of_stage(run.graph, run.graph.ranks[rank.index()].pp), rank.index());
    one["peak_at"] = time.ticks(peak_of(recorded).at);
    one["at"] = Json::array();
    for (const MemorySample& sample : samples) one["at"].push_back(time.ticks(sample.at));
    one["held"] = Json::array();
    for (const std::size_t category : used) {
      Json held = Json::array();
      for (const MemorySample& sample : samples) {
        held.push_back(sample.bytes[category].value() / unit);
      }
      one["held"].push_back(std::move(held));
    }
    one["alive"] = alive_at(run, timeline, peak_of(recorded).at);
    curves["ranks"].push_back(std::move(one));
  }
  return curves;
}

}  // namespace stepsim
