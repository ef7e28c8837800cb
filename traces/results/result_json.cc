#include "traces/results/result_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "experiment/step/rank_spread.h"
#include "sim/base/json_text.h"
#include "sim/base/quantity_text.h"
#include "traces/formats/trace_counters.h"
#include "traces/results/explain_report.h"
#include "traces/results/published_report.h"

namespace stepsim {
namespace {

constexpr std::size_t kListedLinks = 10;

// JsonObject holds the members of one JSON object in the order in which they are added. In an
// indented object each member has its own line.
class JsonObject {
 public:
  enum class Layout { kOneLine, kLines };

  explicit JsonObject(Layout layout, int depth = 0) : layout_(layout), depth_(depth) {}

  // `value` is JSON text.
  void add(std::string_view key, std::string_view value) {
    add_members(fmt::format(R"("{}": {})", key, value));
  }
  // `members` is JSON text with their keys.
  void add_members(std::string_view members) {
    if (!text_.empty()) text_ += layout_ == Layout::kLines ? "," : ", ";
    if (layout_ == Layout::kLines) new_line(depth_ + 1);
    text_ += members;
  }
  void add(std::string_view key, double value) { add(key, std::string_view(json_number(value))); }
  void add(std::string_view key, Duration value) {
    add(key, std::string_view(exact_seconds(value)));
  }
  void add(std::string_view key, Bytes value) {
    add(key, std::string_view(std::to_string(value.value())));
  }

  std::string text() {
    if (layout_ == Layout::kLines) new_line(depth_);
    return '{' + text_ + '}';
  }

 private:
  void new_line(int depth) {
    text_ += '\n' + std::string(static_cast<std::size_t>(2 * depth), ' ');
  }

  Layout layout_;
  int depth_;
  std::string text_;
};

std::string member_lines(std::span<const std::string> values) {
  return json_lines(values, 4);
}

std::string breakdown_json(const Breakdown& breakdown, const std::vector<std::string>& axes,
                           bool has_launches) {
  JsonObject exposed(JsonObject::Layout::kOneLine);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    exposed.add(axes[i], breakdown.exposed_communication[i]);
  }
  JsonObject object(JsonObject::Layout::kLines, 1);
  object.add("compute", breakdown.compute);
  object.add("exposed_communication", exposed.text());
  object.add("bubble", breakdown.bubble);
  object.add("idle", breakdown.idle);
  if (has_launches) object.add("launch", breakdown.launch);
  return object.text();
}

std::string critical_path_json(const std::vector<PathPart>& path) {
  std::vector<std::string> parts;
  for (const PathPart& part : path) {
    JsonObject object(JsonObject::Layout::kOneLine);
    object.add("label", json_quoted(part.label));
    object.add("duration_s", part.duration);
    parts.push_back(object.text());
  }
  return member_lines(parts);
}

std::string stages_json(const FinishedRun& run) {
  std::vector<std::string> stages;
  for (const RankId rank : fullest_ranks(run.graph, run.result)) {
    const MemoryPeak& peak = run.result.memory_peaks[rank.index()];
    JsonObject object(JsonObject::Layout::kOneLine);
    object.add("stage", std::to_string(stages.size()));
    if (!run.graph.stage_names.empty()) {
      const std::uint32_t stage = run.graph.ranks[rank.index()].pp;
      object.add("name", json_quoted(name_of_stage(run.graph, stage)));
    }
    object.add("rank", std::to_string(rank.index()));
    object.add("peak_bytes", peak.bytes);
    object.add("peak_time_s", peak.at.since_start);
    object.add("peak_op", json_quoted(text_of_peak(run.graph, rank, peak)));
    stages.push_back(object.text());
  }
  return member_lines(stages);
}

std::string memory_json(const StepReport& report) {
  const FinishedRun& run = report.run;
  const MemoryPeak& peak = run.result.memory_peaks[run.result.peak_rank.index()];
  const Bytes capacity = run.cluster.chip.memory_capacity;
  JsonObject categories(JsonObject::Layout::kLines, 2);
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    if (category == MemoryCategory::kCache && peak.by_category[i] == Bytes(0)) continue;
    categories.add(name_of(category), peak.by_category[i]);
  }
  JsonObject object(JsonObject::Layout::kLines, 1);
  object.add("peak_bytes", peak.bytes);
  if (report.peak_bytes) {
    object.add("peak_interval_bytes",
               member_lines(std::array{fmt::format("{:.0f}", report.peak_bytes->low),
                                       fmt::format("{:.0f}", report.peak_bytes->high)}));
    if (const auto median = report.peak_bytes->median) {
      object.add("peak_median_bytes", fmt::format("{:.0f}", *median));
    }
  }
  object.add("capacity_bytes", capacity);
  object.add("fits", peak.bytes <= capacity ? "true" : "false");
  object.add("fits_certainty",
             json_quoted(name_of(certainty_of(peak.bytes, report.peak_bytes, capacity))));
  object.add("peak_rank", std::to_string(run.result.peak_rank.index()));
  object.add("peak_time_s", peak.at.since_start);
  object.add("by_category_bytes", categories.text());
  object.add("peak_op", json_quoted(text_of_peak(run.graph, run.result.peak_rank, peak)));
  object.add("by_stage", stages_json(run));
  if (!run.result.host_peaks.empty()) {
    const Bytes host = *std::ranges::max_element(run.result.host_peaks);
    const Bytes host_capacity = run.cluster.hosts.spec.memory_capacity;
    object.add("host_peak_bytes", host);
    object.add("host_capacity_bytes", host_capacity);
    object.add("host_fits", host <= host_capacity ? "true" : "false");
  }
  return object.text();
}

std::string energy_json(const std::optional<StepEnergy>& energy) {
  if (!energy) return "null";
  JsonObject object(JsonObject::Layout::kOneLine);
  object.add("joules_per_step", energy->joules);
  object.add("joules_per_token", energy->joules_per_token);
  object.add("mean_watts_per_chip", energy->mean_watts_per_chip);
  object.add("peak_watts_per_chip", energy->peak_watts_per_chip);
  object.add("idle_watts_per_chip", energy->idle_watts_per_chip);
  return object.text();
}

std::string links_json(const FinishedRun& run) {
  std::vector<std::string> links;
  for (const LinkTotal& link : busiest_links(run.result, kListedLinks)) {
    JsonObject object(JsonObject::Layout::kOneLine);
    object.add("name", json_quoted(run.cluster.fabric.link_name(link.link)));
    object.add("utilization", link.utilization);
    object.add("bytes", fmt::format("{:.0f}", link.bytes));
    links.push_back(object.text());
  }
  return member_lines(links);
}

std::string ranks_json(const std::vector<RankId>& ranks) {
  std::string text;
  for (const RankId rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank.index());
  return '[' + text + ']';
}

std::string faults_json(const FaultEffects& faults) {
  std::vector<std::string> links;
  for (const FaultyLink& link : faults.links) {
    JsonObject object(JsonObject::Layout::kOneLine);
    object.add("link", json_quoted(link.name));
    object.add("capacity", link.capacity);
    object.add("links", std::to_string(link.links));
    object.add("ranks", ranks_json(link.ranks));
    links.push_back(object.text());
  }
  std::vector<std::string> traffic;
  for (const SlowedTraffic& one : faults.traffic) {
    JsonObject object(JsonObject::Layout::kOneLine);
    object.add("name", json_quoted(one.name));
    object.add("axis", json_quoted(name_of(one.axis)));
    object.add("link", json_quoted(one.link));
    object.add("ranks", ranks_json(one.ranks));
    object.add("slowed", std::to_string(one.slowed));
    object.add("groups", std::to_string(one.groups));
    object.add("without_s", one.without_s);
    object.add("with_s", one.with_s);
    traffic.push_back(object.text());
  }
  JsonObject object(JsonObject::Layout::kOneLine);
  object.add("links", member_lines(links));
  object.add("traffic", member_lines(traffic));
  return object.text();
}

std::string slow_ranks_json(const std::vector<SlowRank>& ranks) {
  std::vector<std::string> slow;
  for (const SlowRank& one : ranks) {
    JsonObject object(JsonObject::Layout::kOneLine);
    object.add("rank", std::to_string(one.rank.index()));
    object.add("compute_s", one.compute);
    object.add("stage_compute_s", one.of_stage);
    object.add("stage_waits_s", one.waited);
    slow.push_back(object.text());
  }
  return member_lines(slow);
}

std::string idle_chips_json(const std::vector<std::uint32_t>& chips, const Cluster& cluster) {
  std::string text;
  for (const std::uint32_t chip : chips) {
    if (!text.empty()) text += ", ";
    text += json_quoted(cluster.fabric.node(cluster.places.chips[chip]).name);
  }
  return '[' + text + ']';
}

std::string folding_json(const FoldStatistics& folding) {
  JsonObject object(JsonObject::Layout::kOneLine);
  object.add("ranks", std::to_string(folding.ranks));
  object.add("classes", std::to_string(folding.classes));
  object.add("factor", folding.factor());
  if (!folding.why_not.empty()) {
    object.add("why_not", json_quoted(folding.why_not));
    return object.text();
  }
  object.add("roles", std::to_string(folding.roles));
  object.add("variations", std::to_string(folding.variations));
  object.add("places", std::to_string(folding.places()));
  return object.text();
}

std::string simulator_json(const SimulatorStatistics& statistics) {
  JsonObject object(JsonObject::Layout::kLines, 1);
  object.add("ops", std::to_string(statistics.ops));
  object.add("events", std::to_string(statistics.events));
  object.add("rate_updates", std::to_string(statistics.rate_updates));
  object.add("packet_hops", std::to_string(statistics.packet_hops));
  if (statistics.folding.ranks > 0) object.add("folding", folding_json(statistics.folding));
  object.add("wall_s", statistics.wall_s);
  object.add("cpu_s", statistics.cpu_s);
  object.add("peak_rss_bytes", std::to_string(statistics.peak_rss_bytes));
  return object.text();
}

}  // namespace

std::string result_json(const StepReport& report, const std::vector<std::string>& what_if) {
  const FinishedRun& run = report.run;
  const StepMetrics& metrics = run.metrics;
  const SimulationResult& result = run.result;
  JsonObject object(JsonObject::Layout::kLines);
  object.add("name", json_quoted(run.experiment.name));
  object.add("step_time_s", metrics.step_time);
  if (report.step_time_s) {
    object.add("step_time_interval_s",
               member_lines(std::array{fmt::format("{:.12f}", report.step_time_s->low),
                                       fmt::format("{:.12f}", report.step_time_s->high)}));
    if (const auto median = report.step_time_s->median) {
      object.add("step_time_median_s", fmt::format("{:.12f}", *median));
    }
  }
  object.add("steps", std::to_string(result.steps));
  object.add("tokens_per_s", metrics.tokens_per_s);
  object.add("tokens_per_s_per_chip", metrics.tokens_per_s_per_chip);
  object.add("model_flops_per_step", metrics.model_flops);
  object.add("flops_convention", json_quoted(name_of(metrics.convention)));
  object.add("peak_flops_per_s_per_chip", metrics.peak_per_chip.value());
  object.add("model_flops_utilization", metrics.model_flops_utilization);
  object.add("hardware_flops_utilization", metrics.hardware_flops_utilization);
  object.add("fidelity", json_quoted(name_of(run.options.fidelity)));
  object.add("granularity", json_quoted(name_of(run.options.granularity)));
  object.add("chips", std::to_string(metrics.chips));
  if (const auto idle = idle_chips(run.graph, run.cluster); !idle.empty()) {
    object.add("idle_chips", idle_chips_json(idle, run.cluster));
  }
  if (!report.published.empty()) object.add("published", published_json(report.published));
  object.add("breakdown_s",
             breakdown_json(result.breakdown, run.graph.axes, run.graph.host.has_value()));
  if (metrics.pass) {
    JsonObject cache(JsonObject::Layout::kOneLine);
    cache.add("bytes_per_token", metrics.pass->cache_per_token);
    cache.add("bytes", metrics.pass->cache);
    object.add("kv_cache", cache.text());
  }
  if (metrics.pass && metrics.pass->bandwidth_utilization) {
    object.add("memory_bandwidth_utilization", *metrics.pass->bandwidth_utilization);
  }
  if (metrics.experts) {
    JsonObject experts(JsonObject::Layout::kOneLine);
    experts.add("busiest_rank_over_mean", metrics.experts->busiest_over_mean);
    experts.add("dropped_copies", fmt::format("{:.0f}", metrics.experts->dropped_copies));
    experts.add("dropped_fraction", metrics.experts->dropped_fraction);
    object.add("experts", experts.text());
  }
  if (!report.placement.empty()) {
    std::vector<std::string> texts;
    for (const PlacementNote& note : report.placement) texts.push_back(json_quoted(note.text));
    object.add("placement", member_lines(texts));
  }
  if (!report.faults.links.empty()) object.add("faults", faults_json(report.faults));
  if (const RankSpread spread = rank_spread(run.graph, result); !spread.slow.empty()) {
    object.add("slow_ranks", slow_ranks_json(spread.slow));
  }
  object.add("critical_path", critical_path_json(result.critical_path));
  object.add("memory", memory_json(report));
  object.add("energy", energy_json(report.energy));
  object.add("links", links_json(run));
  JsonObject by_axis(JsonObject::Layout::kOneLine);
  for (std::size_t i = 0; i < run.graph.axes.size(); ++i) {
    by_axis.add(run.graph.axes[i], result.bytes_by_axis[i]);
  }
  object.add("bytes_by_axis", by_axis.text());
  if (!report.experiment_json.empty()) object.add("experiment", report.experiment_json);
  if (report.explanation) object.add("explain", explanation_json(*report.explanation));
  for (const std::string& members : what_if) object.add_members(members);
  object.add("simulator", simulator_json(result.statistics));
  return object.text() + '\n';
}

}  // namespace stepsim
