#include "traces/formats/trace_counters.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "traces/formats/link_kinds.h"
#include "traces/formats/trace_lanes.h"

namespace stepsim {
namespace {

// By LinkId; null: not recorded.
std::vector<const LinkSeries*> series_of_links(const Cluster& cluster,
                                               const SimulationResult& result) {
  std::vector<const LinkSeries*> series(cluster.fabric.links().size(), nullptr);
  for (const LinkSeries& one : result.link_series) series[one.link.index()] = &one;
  for (std::size_t link = 0; link < result.series_of_link.size(); ++link) {
    series[link] = &result.link_series[result.series_of_link[link]];
  }
  return series;
}

bool carried_anything(const LinkSeries* series) {
  return series != nullptr &&
         std::ranges::any_of(series->bytes, [](double bytes) { return bytes > 0; });
}

// Links that are shown as one.
struct LinkLoad {
  std::string name;
  struct Part {
    const LinkSeries* series = nullptr;
    std::int64_t links = 0;  // that have it
  };
  std::map<LinkId, Part> parts{};  // by the link of the series
  double bandwidth = 0;            // of all links
};

std::vector<double> bytes_of(const LinkLoad& load) {
  std::vector<double> sum;
  for (const auto& [link, part] : load.parts) {
    const std::vector<double>& bytes = part.series->bytes;
    sum.resize(std::max(sum.size(), bytes.size()));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      sum[i] += static_cast<double>(part.links) * bytes[i];
    }
  }
  return sum;
}

class LinkCounters {
 public:
  LinkCounters(const SimulationResult& result, std::uint32_t process, TraceSink& sink)
      : result_(result), process_(process), sink_(sink) {}

  // Writes a sample wherever the utilization changes, and zero at the end of the run.
  void write(const LinkLoad& load) {
    const std::vector<double> bytes = bytes_of(load);
    const std::size_t bins = bytes.size();
    const std::size_t merged = (bins + kMostTraceBins - 1) / kMostTraceBins;  // bins in one
    std::optional<std::int64_t> shown;
    for (std::size_t bin = 0; bin < bins; bin += merged) {
      const Time begin{result_.bin_width * static_cast<std::int64_t>(bin)};
      if (begin >= result_.end) break;
      const std::size_t last = std::min(bin + merged, bins);
      const Time end =
          std::min(Time{result_.bin_width * static_cast<std::int64_t>(last)}, result_.end);
      double sum = 0;
      for (std::size_t i = bin; i < last; ++i) sum += bytes[i];
      // Utilization in hundredths of a percent.
      const auto utilization = static_cast<std::int64_t>(
          std::llround(1e4 * sum / (load.bandwidth * to_seconds(end - begin))));
      if (utilization != shown) write_sample(load.name, begin, utilization);
      shown = utilization;
    }
    if (shown && *shown != 0) write_sample(load.name, result_.end, 0);
  }

 private:
  void write_sample(const std::string& name, Time at, std::int64_t hundredths) {
    sink_.sample({.process = process_,
                  .name = name,
                  .unit = "percent",
                  .at = nanoseconds(at),
                  .value = static_cast<double>(hundredths) / 100});
  }

  const SimulationResult& result_;
  std::uint32_t process_;
  TraceSink& sink_;
};

// Returns the kinds of which some link carried anything.
std::vector<LinkLoad> loads_of_kinds(const Cluster& cluster,
                                     const std::vector<const LinkSeries*>& series) {
  const LinkKinds kinds = link_kinds(cluster.fabric, cluster.places);
  std::map<std::uint32_t, LinkLoad> loads;
  for (std::size_t link = 0; link < series.size(); ++link) {
    if (series[link] == nullptr) continue;
    LinkLoad& load = loads[kinds.of_link[link]];
    load.name = "all " + kinds.names[kinds.of_link[link]];
    LinkLoad::Part& part = load.parts[series[link]->link];
    part.series = series[link];
    ++part.links;
    load.bandwidth += cluster.fabric.links()[link].bandwidth.value();
  }
  std::vector<LinkLoad> used;
  for (auto& [kind, load] : loads) {
    const auto carried = [](const auto& part) { return carried_anything(part.second.series); };
    if (std::ranges::any_of(load.parts, carried)) used.push_back(std::move(load));
  }
  return used;
}

// Returns by how much the number of micro-batches in flight changes, by nanosecond.
std::map<std::int64_t, std::int64_t> changes_in_flight(const Timeline& timeline,
                                                       const Program& program) {
  std::map<std::pair<std::uint32_t, std::int32_t>, Span> lives;  // by step and micro-batch
  for (const TimelineOp& entry : timeline.ops) {
    const OpLabel& label = program.labels[entry.op];
    if (program.ops[entry.op].kind != OpKind::kCompute || !label.microbatch) continue;
    const Span span{nanoseconds(entry.started), nanoseconds(entry.ended)};
    Span& life = lives.try_emplace({entry.step, *label.microbatch}, span).first->second;
    life.begin = std::min(life.begin, span.begin);
    life.end = std::max(life.end, span.end);
  }
  std::map<std::int64_t, std::int64_t> changes;
  for (const auto& [microbatch, life] : lives) {
    ++changes[life.begin];
    --changes[life.end];
  }
  return changes;
}

}  // namespace

// Writes a sample of the total and of each category that changed.
void write_memory(const Timeline& timeline, std::uint32_t process, TraceSink& sink) {
  MemoryBytes shown{};
  std::optional<Bytes> shown_total;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    names.push_back("memory: " + std::string(name_of(static_cast<MemoryCategory>(i))));
  }
  const std::string total_name = "memory: total";
  const auto write = [&](const std::string& name, Time at, Bytes bytes) {
    sink.sample({.process = process,
                 .name = name,
                 .unit = "bytes",
                 .at = nanoseconds(at),
                 .value = static_cast<double>(bytes.value())});
  };
  for (const MemorySample& sample : timeline.memory) {
    Bytes total;
    for (const Bytes bytes : sample.bytes) total += bytes;
    if (total != shown_total) write(total_name, sample.at, total);
    shown_total = total;
    for (std::size_t i = 0; i < kMemoryCategories; ++i) {
      if (sample.bytes[i] != shown[i]) write(names[i], sample.at, sample.bytes[i]);
    }
    shown = sample.bytes;
  }
}

void write_in_flight(const OpGraph& graph, const Timeline& timeline, std::uint32_t process,
                     std::optional<std::int64_t> tokens_per_microbatch, TraceSink& sink) {
  const Program& program = graph.programs[graph.ranks[timeline.rank.index()].program.index()];
  std::int64_t count = 0;
  for (const auto& [at, change] : changes_in_flight(timeline, program)) {
    count += change;
    if (change == 0) continue;
    sink.sample({.process = process,
                 .name = tokens_per_microbatch ? "tokens in flight" : "micro-batches in flight",
                 .unit = tokens_per_microbatch ? "tokens" : "micro-batches",
                 .at = at,
                 .value = static_cast<double>(count * tokens_per_microbatch.value_or(1))});
  }
}

void write_watts(const OpGraph& graph, const Timeline& timeline, std::uint32_t process,
                 const KernelEnergy& energy, TraceSink& sink) {
  std::optional<double> shown;
  for (const WattsSample& sample : watts_over_time(graph, timeline, energy)) {
    const double watts = std::round(sample.watts);
    if (watts == shown) continue;
    shown = watts;
    sink.sample({.process = process,
                 .name = "watts",
                 .unit = "watts",
                 .at = nanoseconds(sample.at),
                 .value = watts});
  }
}

std::vector<LinkKindLoad> link_kind_loads(const Cluster& cluster, const SimulationResult& result) {
  constexpr std::size_t kAll = std::string_view("all ").size();
  std::vector<LinkKindLoad> kinds;
  for (const LinkLoad& load : loads_of_kinds(cluster, series_of_links(cluster, result))) {
    LinkKindLoad& kind = kinds.emplace_back();
    kind.kind = load.name.substr(kAll);
    for (const auto& [link, part] : load.parts) kind.links += part.links;
    kind.bandwidth = load.bandwidth;
    kind.bytes = bytes_of(load);
  }
  return kinds;
}

void write_links(const OpGraph& graph, const Cluster& cluster, const SimulationResult& result,
                 std::uint32_t process, std::size_t position, TraceSink& sink) {
  const std::vector<const LinkSeries*> series = series_of_links(cluster, result);
  const std::vector<LinkLoad> kinds = loads_of_kinds(cluster, series);
  if (kinds.empty()) return;
  sink.process(process, "link utilization", position);
  LinkCounters counters(result, process, sink);
  for (const LinkLoad& kind : kinds) counters.write(kind);
  for (const LinkId link : traced_links(graph, cluster, result)) {
    counters.write({.name = cluster.fabric.link_name(link),
                    .parts = {{link, {series[link.index()], 1}}},
                    .bandwidth = cluster.fabric.link(link).bandwidth.value()});
  }
}

std::vector<LinkId> traced_links(const OpGraph& graph, const Cluster& cluster,
                                 const SimulationResult& result) {
  const std::vector<Link>& links = cluster.fabric.links();
  std::vector<bool> at_recorded_chip(cluster.fabric.nodes().size(), false);
  if (result.recorded.size() <= kMostRanksWithLinks) {
    for (const RecordedRank& recorded : result.recorded) {
      const std::uint32_t chip = graph.ranks[recorded.rank.index()].chip;
      at_recorded_chip[cluster.places.chips[chip].index()] = true;
    }
  }
  std::vector<bool> chosen(links.size(), false);
  for (std::size_t i = 0; i < links.size(); ++i) {
    chosen[i] = at_recorded_chip[links[i].from.index()] || at_recorded_chip[links[i].to.index()];
  }
  for (const LinkTotal& link : busiest_links(result, kBusiestTracedLinks)) {
    chosen[link.link.index()] = true;
  }
  const std::vector<const LinkSeries*> series = series_of_links(cluster, result);
  std::vector<LinkId> traced;
  for (std::uint32_t link = 0; link < links.size(); ++link) {
    if (chosen[link] && carried_anything(series[link])) traced.emplace_back(link);
  }
  return traced;
}

std::vector<LinkTotal> busiest_links(const SimulationResult& result, std::size_t count) {
  std::vector<LinkTotal> links;
  std::ranges::copy_if(result.links, std::back_inserter(links),
                       [](const LinkTotal& link) { return link.bytes > 0; });
  const auto busier = [](const LinkTotal& a, const LinkTotal& b) {
    return a.utilization != b.utilization ? a.utilization > b.utilization : a.link < b.link;
  };
  const std::size_t kept = std::min(count, links.size());
  std::partial_sort(links.begin(), links.begin() + static_cast<std::ptrdiff_t>(kept), links.end(),
                    busier);
  links.resize(kept);
  return links;
}

}  // namespace stepsim
