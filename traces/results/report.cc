#include "traces/results/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "experiment/step/rank_spread.h"
#include "sim/base/quantity_text.h"
#include "sim/hardware/group_links.h"
#include "traces/formats/link_kinds.h"
#include "traces/results/published_report.h"
#include "traces/results/report_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kBarWidth = 40;
constexpr std::size_t kLinkKinds = 6;
constexpr std::size_t kListedStages = 8;

// Writes 16,187,392 as "16.2 M".
std::string counted(double number) {
  static constexpr std::array<std::pair<double, std::string_view>, 3> kScales{
      {{1e9, " G"}, {1e6, " M"}, {1e3, " k"}}};
  for (const auto& [scale, suffix] : kScales) {
    if (number >= scale) return fmt::format("{:.1f}{}", number / scale, suffix);
  }
  return fmt::format("{:.0f}", number);
}

// "38.4 MJ", "0.812 J".
std::string joules_text(double joules) {
  static constexpr std::array<std::pair<double, std::string_view>, 6> kScales{
      {{1e12, "TJ"}, {1e9, "GJ"}, {1e6, "MJ"}, {1e3, "kJ"}, {1, "J"}, {0, "mJ"}}};
  const auto unit = std::ranges::find_if(kScales, [=](auto one) { return joules >= one.first; });
  const double amount = joules / (unit->first > 0 ? unit->first : 1e-3);
  const int decimals = amount < 10 ? 2 : amount < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", amount, decimals, unit->second);
}

// Returns whole numbers in proportion to `parts` that add up to `whole`. Each is rounded down, and
// the remainder goes to those that lost most.
std::vector<std::int64_t> apportion(std::span<const double> parts, std::int64_t whole) {
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  std::vector<std::int64_t> shares(parts.size(), 0);
  if (sum <= 0) return shares;
  std::vector<std::pair<double, std::size_t>> lost;
  std::int64_t missing = whole;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double exact = parts[i] / sum * static_cast<double>(whole);
    shares[i] = static_cast<std::int64_t>(exact);
    lost.emplace_back(static_cast<double>(shares[i]) - exact, i);
    missing -= shares[i];
  }
  std::ranges::sort(lost);
  for (std::size_t i = 0; i < lost.size() && missing > 0; ++i, --missing) ++shares[lost[i].second];
  return shares;
}

// Draws `fraction` of a bar of `width` characters, in eighths of a character.
std::string bar(double fraction, std::size_t width) {
  static constexpr std::array<std::string_view, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double clipped = std::clamp(fraction, 0.0, 1.0);
  auto eighths = static_cast<std::size_t>(std::lround(clipped * 8 * static_cast<double>(width)));
  if (clipped > 0) eighths = std::max<std::size_t>(eighths, 1);
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "█";
  text += kEighths[eighths % 8];
  const std::size_t used = (eighths + 7) / 8;
  return text + std::string(width - used, ' ');
}

// ColumnScale is the unit of a whole column and its number of decimals.
struct ColumnScale {
  std::string_view unit;
  double size = 1;
  int decimals = 3;
};

ColumnScale scale_of(Duration largest) {
  const auto picoseconds = static_cast<double>(largest.count());
  if (picoseconds >= 1e12) return {"s", 1e12, 3};
  if (picoseconds >= 1e9) return {"ms", 1e9, 3};
  if (picoseconds >= 1e6) return {"us", 1e6, 3};
  return {"ns", 1e3, 3};
}

ColumnScale scale_of(Bytes largest) {
  const auto bytes = static_cast<double>(largest.value());
  if (bytes >= 1e9) return {"GB", 1e9, 2};
  if (bytes >= 1e6) return {"MB", 1e6, 2};
  return {"KB", 1e3, 2};
}

// Writes `count` of the smallest steps that the column shows.
std::string scaled(std::int64_t count, const ColumnScale& scale) {
  return fmt::format("{:.{}f} {}", static_cast<double>(count) / std::pow(10.0, scale.decimals),
                     scale.decimals, scale.unit);
}

std::int64_t steps_of(double value, const ColumnScale& scale) {
  return std::llround(value / scale.size * std::pow(10.0, scale.decimals));
}

struct Row {
  std::string label;
  double value = 0;  // picoseconds or bytes
};

// Returns a rank and its place in the plan: "rank 0 (stage 0)".
std::string rank_text(RankId rank, const OpGraph& graph) {
  return fmt::format("rank {} ({})", rank.index(),
                     name_of_stage(graph, graph.ranks[rank.index()].pp));
}

class Report : private ReportText {
 public:
  Report(const StepReport& report, const ReportOptions& options)
      : ReportText(options.color), report_(report), run_(report.run), options_(options) {}

  std::string write() {
    title();
    headline();
    published();
    breakdown();
    spread();
    faults();
    experts();
    placement();
    critical_path();
    memory();
    links();
    simulator();
    return text();
  }

 private:
  // Adds rows with bars, and their sum below.
  void rows(std::span<const Row> all, const ColumnScale& scale, std::string_view sum_label) {
    std::vector<Row> shown;
    std::ranges::copy_if(all, std::back_inserter(shown),
                         [](const Row& row) { return row.value > 0; });
    std::vector<double> values;
    for (const Row& row : shown) values.push_back(row.value);
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    const std::int64_t whole = steps_of(sum, scale);
    const std::vector<std::int64_t> amounts = apportion(values, whole);
    const std::vector<std::int64_t> permille = apportion(values, 1000);
    for (std::size_t i = 0; i < shown.size(); ++i) {
      line("  {:<{}}{}  {:>12}  {:>5.1f} %", shown[i].label, kReportLabel,
           paint(bar(values[i] / sum, kBarWidth), Paint::kBar), scaled(amounts[i], scale),
           static_cast<double>(permille[i]) / 10);
    }
    line("  {:<{}}  {:>12}  {:>5.1f} %", sum_label, kReportLabel + kBarWidth, scaled(whole, scale),
         100.0);
  }

  void title() {
    const ParallelPlan& plan = run_.experiment.plan;
    line("{}", paint(run_.experiment.name, Paint::kBold));
    if (!run_.experiment.model.note.empty()) {
      line("  {}: {}", run_.experiment.model.name, run_.experiment.model.note);
    }
    line("  {} on {}: {} x {}{}", run_.experiment.model.name, run_.experiment.cluster.name,
         grouped(run_.metrics.chips), run_.cluster.chip.name, idle_text());
    std::string axes;
    for (const PlanAxis axis : plan.mesh.order) {
      if (plan.mesh.size_of(axis) == 1) continue;
      axes += fmt::format("{} {}, ", name_of(axis), plan.mesh.size_of(axis));
    }
    if (plan.mesh.pp > 1 && !plan.is_inference())
      axes += fmt::format("{}, ", schedule_text(plan.pipeline));
    if (plan.messages.batch_p2p) axes += "messages in batches, ";
    if (plan.state.zero > 0)
      axes += plan.state.zero == 3 ? "FSDP, " : fmt::format("ZeRO-{}, ", plan.state.zero);
    if (plan.update.clip_gradients) {
      axes += plan.update.post_validation ? "clipped with post-validation, " : "clipped, ";
    }
    if (plan.is_inference()) {
      line("  {}{}", axes, name_of(plan.precision.type));
      line("  {}", requests_text());
    } else {
      line("  {}micro-batch {}, {}", axes, plan.batch.microbatch_size,
           name_of(plan.precision.type));
      line("  {} sequences of {} tokens a step", grouped(plan.batch.global_batch),
           grouped(plan.batch.sequence));
    }
    for (const std::string& setting : report_.settings) wrapped(2, setting);
  }

  // "64 requests generate a token each, after 8,191 others".
  std::string requests_text() const {
    const ParallelPlan& plan = run_.experiment.plan;
    const std::string cached = grouped(plan.pass.context - plan.batch.sequence);
    std::string text = grouped(plan.batch.global_batch);
    if (plan.pass.inference == Inference::kPrefill) {
      text += fmt::format(" prompts of {} new tokens", grouped(plan.batch.sequence));
      if (plan.pass.context > plan.batch.sequence)
        text += fmt::format(", {} before them in the cache", cached);
      return text;
    }
    text += fmt::format(" requests generate {}, with {} before in the cache",
                        plan.batch.sequence == 1
                            ? "a token each"
                            : fmt::format("{} tokens each", grouped(plan.batch.sequence)),
                        cached);
    if (plan.pass.prefill_tokens == 0) return text;
    return text + fmt::format("; {} tokens of a prompt beside them on each replica",
                              grouped(plan.pass.prefill_tokens));
  }

  std::string idle_text() const {
    const std::size_t idle = idle_chips(run_.graph, run_.cluster).size();
    if (idle == 0) return "";
    return fmt::format(", {} idle{}", grouped(static_cast<std::int64_t>(idle)), domains_text());
  }

  // Says which part of each node or rack has ranks, if no domain is full.
  std::string domains_text() const {
    const std::uint32_t domain = chips_per_node(run_.cluster.places);
    const auto share = std::ranges::count_if(
        run_.graph.ranks, [domain](const RankData& rank) { return rank.chip < domain; });
    const auto ranks = static_cast<std::int64_t>(run_.graph.ranks.size());
    if (share == ranks || share >= std::int64_t{domain}) return "";
    return fmt::format(" (ranks have {} of the {} chips of each domain)", share, domain);
  }

  void headline() {
    const StepMetrics& metrics = run_.metrics;
    const ColumnScale scale = scale_of(metrics.step_time);
    blank();
    const auto row = [&](std::string_view name, const std::string& value, std::string_view remark) {
      line("  {:<{}}{}  {}", name, kReportLabel, paint(fmt::format("{:>12}", value), Paint::kBold),
           remark);
    };
    row(metrics.pass ? "pass" : "step time",
        scaled(steps_of(static_cast<double>(metrics.step_time.count()), scale), scale),
        run_.result.steps > 1
            ? fmt::format("of {} steps, from the end of the first", run_.result.steps)
            : "");
    if (report_.step_time_s) {
      const auto bound = [&](double seconds) {
        return scaled(steps_of(seconds * kPicosecondsPerSecond, scale), scale);
      };
      line("  {:<{}}{} to {} in 8 of 10 such runs", "", kReportLabel,
           bound(report_.step_time_s->low), bound(report_.step_time_s->high));
      const double seconds = to_seconds(metrics.step_time);
      if (const auto median = telling_median(*report_.step_time_s, seconds)) {
        line("  {:<{}}such runs measured {:.2f} times this at the median: {}", "", kReportLabel,
             *median, bound(*median * seconds));
      }
    }
    row("tokens/s", grouped(metrics.tokens_per_s),
        fmt::format("{} a chip", grouped(metrics.tokens_per_s_per_chip)));
    row("MFU", fmt::format("{:.1f} %", 100 * metrics.model_flops_utilization),
        fmt::format("of {} a chip, attention counted {}; HFU {:.1f} %",
                    to_text(metrics.peak_per_chip), name_of(metrics.convention),
                    100 * metrics.hardware_flops_utilization));
    energy();
    if (metrics.pass) pass();
  }

  void energy() {
    if (!report_.energy) {
      line("  {:<{}}{:>12}  {} doesn't say its power: `power` of the chip", "energy", kReportLabel,
           "not known", run_.cluster.chip.name);
      return;
    }
    const StepEnergy& energy = *report_.energy;
    line("  {:<{}}{}  {} a token, {:.0f} W a chip, at most {:.0f} W; chips alone", "energy",
         kReportLabel, paint(fmt::format("{:>12}", joules_text(energy.joules)), Paint::kBold),
         joules_text(energy.joules_per_token), energy.mean_watts_per_chip,
         energy.peak_watts_per_chip);
  }

  void pass() {
    const PassMetrics& metrics = *run_.metrics.pass;
    const auto row = [&](std::string_view name, const std::string& value, std::string_view remark) {
      line("  {:<{}}{}  {}", name, kReportLabel, paint(fmt::format("{:>12}", value), Paint::kBold),
           remark);
    };
    row("cache", to_text(metrics.cache),
        fmt::format("{} a token of a request", to_text(metrics.cache_per_token)));
    if (metrics.bandwidth_utilization) {
      row("memory bandwidth", fmt::format("{:.1f} %", 100 * *metrics.bandwidth_utilization),
          "of the peak, for weights and cache read once");
    }
  }

  // Adds nothing if nothing was published or if flags changed the experiment.
  void published() {
    if (report_.published.empty()) return;
    section("Published", "measured by others on real chips");
    add_published(*this, report_.published);
  }

  void breakdown() {
    const Breakdown& parts = run_.result.breakdown;
    const auto value = [](Duration duration) { return static_cast<double>(duration.count()); };
    std::vector<Row> all{{"compute", value(parts.compute)}};
    for (std::size_t i = 0; i < run_.graph.axes.size(); ++i) {
      all.push_back(
          {fmt::format("exposed {}", run_.graph.axes[i]), value(parts.exposed_communication[i])});
    }
    all.push_back({"pipeline bubble", value(parts.bubble)});
    all.push_back({"idle", value(parts.idle)});
    if (run_.graph.host) all.push_back({"waiting for launches", value(parts.launch)});
    section("Where the step goes", "mean of all ranks");
    rows(all, scale_of(run_.result.step_time), "step");
  }

  // Adds a line for each stage of a pipeline, and sentences on ranks that differ from their stage;
  // nothing if all ranks do the same.
  void spread() {
    const RankSpread spread = rank_spread(run_.graph, run_.result);
    const ColumnScale scale = scale_of(run_.result.step_time);
    const auto amount = [&](Duration time) {
      return scaled(steps_of(static_cast<double>(time.count()), scale), scale);
    };
    if (spread.most_compute == spread.least_compute) return;
    section("Stages and ranks",
            fmt::format("{:>12}{:>12}{:>12}{:>12}", "compute", "exposed", "bubble", "other waits"));
    const std::size_t stages = spread.stages.size();
    for (std::size_t i = 0; stages > 1 && i < stages; ++i) {
      if (stages > kListedStages && i == kListedStages / 2) {
        i = stages - kListedStages / 2;
        line("  ...");
      }
      const Breakdown& mean = spread.stages[i].mean;
      const Duration waits = mean.idle + mean.launch;
      line("  {:<{}}{:>12}{:>12}{:>12}{:>12}", name_of_stage(run_.graph, spread.stages[i].stage),
           kReportLabel, amount(mean.compute),
           amount(mean.sum() - mean.compute - mean.bubble - waits), amount(mean.bubble),
           amount(waits));
    }
    line("  {} computes longest, {}; {} least, {}", rank_text(spread.most, run_.graph),
         amount(spread.most_compute), rank_text(spread.least, run_.graph),
         amount(spread.least_compute));
    for (const SlowRank& slow : spread.slow) {
      wrapped(2,
              fmt::format("{} computes {:.1f} % longer than the mean of its stage, {}; the stage's "
                          "ranks wait {} longer than it does",
                          rank_text(slow.rank, run_.graph),
                          100 * (static_cast<double>(slow.compute.count()) /
                                     static_cast<double>(slow.of_stage.count()) -
                                 1),
                          amount(slow.of_stage), amount(slow.waited)));
    }
  }

  // Says which links are slow or down, who is behind them, and what waits for them.
  void faults() {
    const FaultEffects& faults = report_.faults;
    if (faults.links.empty()) return;
    section("Faults", "what waits for them, each alone");
    for (const FaultyLink& link : faults.links) wrapped(2, link.text());
    for (const SlowedTraffic& one : faults.traffic) wrapped(2, one.text());
    if (faults.traffic.empty()) line("  slow no collective and no message of this plan");
  }

  // Adds a line on how uneven routing is; nothing if it is even.
  void experts() {
    const std::optional<ExpertBalance>& balance = run_.metrics.experts;
    if (!balance) return;
    section("Experts");
    line("  the busiest rank of ep gets {:.2f} times the mean of the tokens' copies",
         balance->busiest_over_mean);
    if (balance->dropped_fraction > 0) {
      line("  {} copies are dropped beyond the capacity, {:.1f} % of all",
           grouped(balance->dropped_copies), 100 * balance->dropped_fraction);
    }
  }

  // Adds notes on the costs of the ranks' placement, if there are any.
  void placement() {
    if (report_.placement.empty()) return;
    section("Placement");
    for (const PlacementNote& note : report_.placement) wrapped(2, note.text);
  }

  // Adds one or two lines. The critical path is another breakdown of the step, along the ops that
  // decided its end.
  void critical_path() {
    std::vector<double> values;
    for (const PathPart& part : run_.result.critical_path) {
      values.push_back(static_cast<double>(part.duration.count()));
    }
    const std::vector<std::int64_t> permille = apportion(values, 1000);
    section("Critical path");
    std::string current = "  ";
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string part = fmt::format("{} {:.1f} %", run_.result.critical_path[i].label,
                                           static_cast<double>(permille[i]) / 10);
      if (current.size() > 2 && current.size() + 3 + part.size() > kReportWidth) {
        line("{}", current);
        current = "  ";
      }
      current += (current.size() > 2 ? " + " : "") + part;
    }
    line("{}", current);
  }

  std::string sureness(Bytes peak, Bytes capacity) const {
    switch (certainty_of(peak, report_.peak_bytes, capacity)) {
      case FitCertainty::kSure:
        return ": sure to fit";
      case FitCertainty::kLikely:
        return ": not sure to fit";
      case FitCertainty::kNo:
        break;
    }
    return "";
  }

  void memory() {
    const SimulationResult& result = run_.result;
    const MemoryPeak& peak = result.memory_peaks[result.peak_rank.index()];
    const Bytes capacity = run_.cluster.chip.memory_capacity;
    const std::string where = rank_text(result.peak_rank, run_.graph);
    if (peak.bytes <= capacity) {
      const bool is_sure =
          certainty_of(peak.bytes, report_.peak_bytes, capacity) == FitCertainty::kSure;
      section("Memory", fmt::format("{}: {} of {} ({:.1f} %) on {}",
                                    is_sure ? paint("fits", Paint::kGood) : "likely fits",
                                    to_text(peak.bytes), to_text(capacity),
                                    100 * static_cast<double>(peak.bytes.value()) /
                                        static_cast<double>(capacity.value()),
                                    where));
    } else {
      section("Memory",
              paint(fmt::format("DOES NOT FIT by {} on {}", to_text(peak.bytes - capacity), where),
                    Paint::kBad));
      const auto too_large = std::ranges::count_if(
          result.memory_peaks, [&](const MemoryPeak& other) { return other.bytes > capacity; });
      line("  needs {} of {} at {}; {} of {} ranks need too much", to_text(peak.bytes),
           to_text(capacity), to_text(peak.at.since_start), grouped(too_large),
           grouped(static_cast<std::int64_t>(result.memory_peaks.size())));
    }
    if (report_.peak_bytes) {
      wrapped(2, fmt::format("{} to {} in 8 of 10 such runs{}",
                             to_text(Bytes(std::llround(report_.peak_bytes->low))),
                             to_text(Bytes(std::llround(report_.peak_bytes->high))),
                             sureness(peak.bytes, capacity)));
      memory_median(static_cast<double>(peak.bytes.value()));
    }
    std::vector<Row> all;
    for (std::size_t i = 0; i < kMemoryCategories; ++i) {
      std::string name(name_of(static_cast<MemoryCategory>(i)));
      std::ranges::replace(name, '_', ' ');
      all.push_back({name, static_cast<double>(peak.by_category[i].value())});
    }
    rows(all, scale_of(peak.bytes), "peak");
    if (!result.host_peaks.empty()) host_memory();
    const std::string held = text_of_peak(run_.graph, result.peak_rank, peak);
    if (!held.empty()) {
      wrapped(2, fmt::format("reached at {} with {}", to_text(peak.at.since_start), held));
    }
    const std::vector<RankId> fullest = fullest_ranks(run_.graph, result);
    std::string stages = "peak of each stage:";
    for (const RankId rank : fullest) {
      stages += " " + to_text(result.memory_peaks[rank.index()].bytes);
      if (rank != fullest.back()) stages += ",";
    }
    if (fullest.size() > 1) wrapped(2, stages);
  }

  void memory_median(double peak) {
    const auto median = telling_median(*report_.peak_bytes, peak);
    if (!median) return;
    line("  such runs needed {:.2f} times this at the median: {}", *median,
         to_text(Bytes(std::llround(*median * peak))));
  }

  void host_memory() {
    const Bytes host = *std::ranges::max_element(run_.result.host_peaks);
    const Bytes capacity = run_.cluster.hosts.spec.memory_capacity;
    line("  on a host: {} of {}{}", to_text(host), to_text(capacity),
         host <= capacity ? "" : ": " + paint("DOES NOT FIT", Paint::kBad));
  }

  struct LinkKind {
    std::string name;
    std::int64_t links = 0;
    double sum = 0;  // sum of utilizations
    LinkTotal busiest;
  };

  std::vector<LinkKind> link_kinds() const {
    const LinkKinds known = stepsim::link_kinds(run_.cluster.fabric, run_.cluster.places);
    std::vector<LinkKind> kinds(known.names.size());
    for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i].name = known.names[i];
    for (const LinkTotal& link : run_.result.links) {
      LinkKind& kind = kinds[known.of_link[link.link.index()]];
      if (kind.links == 0 || link.utilization > kind.busiest.utilization) kind.busiest = link;
      ++kind.links;
      kind.sum += link.utilization;
    }
    std::erase_if(kinds, [](const LinkKind& kind) { return !(kind.busiest.bytes > 0); });
    std::ranges::stable_sort(kinds, [](const LinkKind& a, const LinkKind& b) {
      return a.busiest.utilization > b.busiest.utilization;
    });
    kinds.resize(std::min(kinds.size(), kLinkKinds));
    return kinds;
  }

  void links() {
    const std::vector<LinkKind> kinds = link_kinds();
    if (kinds.empty()) return;
    section("Busiest links", "utilization over the run: mean and busiest of each kind");
    for (const LinkKind& kind : kinds) {
      line("  {:<30.30} {:>7} links {:>7.1f} % {:>7.1f} %  {:.30}", kind.name, grouped(kind.links),
           100 * kind.sum / static_cast<double>(kind.links), 100 * kind.busiest.utilization,
           run_.cluster.fabric.link_name(kind.busiest.link));
    }
  }

  void transport(const TransportTotals& of) {
    const auto count = [](std::uint64_t number) {
      return grouped(static_cast<std::int64_t>(number));
    };
    line("  transport {}: {} packets, {} marked, {} trimmed, {} dropped, {} sent again",
         name_of(run_.options.transport->kind), count(of.packets), count(of.marked),
         count(of.trimmed), count(of.dropped), count(of.repeated));
    line("  {} pauses, {} in all; longest queue {}{}", count(of.pauses), to_text(of.paused),
         to_text(Bytes(static_cast<std::int64_t>(of.peak_queue))),
         of.peak_link ? " at " + run_.cluster.fabric.link_name(*of.peak_link) : "");
  }

  void simulator() {
    const SimulatorStatistics& statistics = run_.result.statistics;
    const double seconds = std::max(statistics.wall_s, 1e-9);
    const auto rate = [&](std::uint64_t count, std::string_view what) {
      const auto number = static_cast<double>(count);
      return fmt::format("{} {} ({}/s)", counted(number), what, counted(number / seconds));
    };
    section("Simulator", fmt::format("{} model, {} collectives", name_of(run_.options.fidelity),
                                     name_of(run_.options.granularity)));
    line("  {}, {} in {:.2f} s, {} of memory", rate(statistics.ops, "ops"),
         rate(statistics.events, "events"), statistics.wall_s,
         to_text(Bytes(statistics.peak_rss_bytes)));
    if (statistics.transport) transport(*statistics.transport);
    if (options_.trace_path.empty() && options_.json_path.empty() && options_.html_path.empty()) {
      return;
    }
    blank();
    if (!options_.json_path.empty()) line("  result  {}", options_.json_path);
    if (!options_.html_path.empty()) line("  report  {}", options_.html_path);
    if (!options_.trace_path.empty()) {
      line("  trace   {}  (open it at https://ui.perfetto.dev)", options_.trace_path);
    }
  }

  const StepReport& report_;
  const FinishedRun& run_;
  const ReportOptions& options_;
};

}  // namespace

std::string report(const StepReport& report, const ReportOptions& options) {
  return Report(report, options).write();
}

}  // namespace stepsim
