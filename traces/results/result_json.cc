#include "traces/results/result_json.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "experiment/step/rank_spread.h"
#include "traces/formats/trace_counters.h"
#include "traces/results/explain_report.h"
#include "traces/results/published_report.h"

namespace stepsim {
namespace {

constexpr std::size_t kListedLinks = 10;

std::int64_t whole(double value) {
  return std::llround(value);
}

// ---- breakdown ----

const ResultTable<FinishedRun>& breakdown_results() {
  static const ResultTable<FinishedRun> kTable = [] {
    const auto part = [](Duration Breakdown::*member) {
      return [member](const FinishedRun& run) { return run.result.breakdown.*member; };
    };
    ResultTable<FinishedRun> table;
    table.add("compute", part(&Breakdown::compute),
              {"the compute stream runs; the optimizer and what communication beside it slows are "
               "in it",
               "s"});
    table.add("exposed_communication",
              [](const FinishedRun& run) {
                ByName<Duration> axes;
                for (std::size_t i = 0; i < run.graph.axes.size(); ++i) {
                  axes.emplace_back(run.graph.axes[i],
                                    run.result.breakdown.exposed_communication[i]);
                }
                return axes;
              },
              {"waits while data of an axis moves: tp, cp, ep, dp, pp, host, other", "s"});
    table.add("bubble", part(&Breakdown::bubble),
              {"waits for another pipeline stage, or has nothing left to run with pp > 1", "s"});
    table.add("idle", part(&Breakdown::idle),
              {"waits for a peer of its own stage, or has nothing left to run with pp = 1", "s"});
    table.add("launch",
              [](const FinishedRun& run) {
                return run.graph.host ? std::optional(run.result.breakdown.launch) : std::nullopt;
              },
              {"waits for its host to launch the next op", "s",
               "where launching costs something: host_launch_cost"});
    return table;
  }();
  return kTable;
}

const ResultTable<PathPart>& path_results() {
  static const ResultTable<PathPart> kTable = [] {
    ResultTable<PathPart> table;
    table.add("label", &PathPart::label,
              {"forward, backward, recompute, optimizer, launch, or an axis for communication"});
    table.add("duration_s", &PathPart::duration, {"time on the path", "s"});
    return table;
  }();
  return kTable;
}

// ---- memory ----

struct StageMemory {
  const FinishedRun* run;
  std::size_t stage = 0;
  RankId rank{};

  const MemoryPeak& peak() const { return run->result.memory_peaks[rank.index()]; }
};

std::vector<StageMemory> memory_of_stages(const StepReport& report) {
  std::vector<StageMemory> stages;
  for (const RankId rank : fullest_ranks(report.run.graph, report.run.result)) {
    stages.push_back({&report.run, stages.size(), rank});
  }
  return stages;
}

const ResultTable<StageMemory>& stage_memory_results() {
  static const ResultTable<StageMemory> kTable = [] {
    ResultTable<StageMemory> table;
    table.add("stage", &StageMemory::stage, {"pipeline stage"});
    table.add("name",
              [](const StageMemory& one) {
                const OpGraph& graph = one.run->graph;
                return graph.stage_names.empty()
                           ? std::nullopt
                           : std::optional(name_of_stage(graph, graph.ranks[one.rank.index()].pp));
              },
              {"attention or experts", "", "with ffn_chips"});
    table.add("rank", &StageMemory::rank, {"its rank that needs most"});
    table.add("peak_bytes", [](const StageMemory& one) { return one.peak().bytes; },
              {"what that rank needs at its peak", "bytes"});
    table.add("peak_time_s", [](const StageMemory& one) { return one.peak().at.since_start; },
              {"when", "s"});
    table.add(
        "peak_op",
        [](const StageMemory& one) { return text_of_peak(one.run->graph, one.rank, one.peak()); },
        {"the op that held most then"});
    return table;
  }();
  return kTable;
}

const MemoryPeak& peak_of(const StepReport& report) {
  const SimulationResult& result = report.run.result;
  return result.memory_peaks[result.peak_rank.index()];
}

Bytes capacity_of(const StepReport& report) {
  return report.run.cluster.chip.memory_capacity;
}

std::optional<Bytes> host_peak(const StepReport& report) {
  const auto& peaks = report.run.result.host_peaks;
  return peaks.empty() ? std::nullopt : std::optional(*std::ranges::max_element(peaks));
}

Bytes host_capacity(const StepReport& report) {
  return report.run.cluster.hosts.spec.memory_capacity;
}

ByName<Bytes> bytes_by_category(const StepReport& report) {
  ByName<Bytes> bytes;
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    const Bytes held = peak_of(report).by_category[i];
    if (category == MemoryCategory::kCache && held == Bytes(0)) continue;
    bytes.emplace_back(name_of(category), held);
  }
  return bytes;
}

const ResultTable<StepReport>& memory_results() {
  static const ResultTable<StepReport> kTable = [] {
    constexpr std::string_view kOffload = "with offload to the host";
    ResultTable<StepReport> table;
    table.add("peak_bytes", [](const StepReport& report) { return peak_of(report).bytes; },
              {"the largest need of any rank", "bytes"});
    table.add(
        "peak_interval_bytes",
        [](const StepReport& report) -> std::optional<std::vector<std::int64_t>> {
          if (!report.peak_bytes) return std::nullopt;
          return std::vector{whole(report.peak_bytes->low), whole(report.peak_bytes->high)};
        },
        {"[low, high]: where 8 of 10 measured peaks would lie", "bytes", "where it is known"});
    table.add("peak_median_bytes",
              [](const StepReport& report) -> std::optional<std::int64_t> {
                if (!report.peak_bytes || !report.peak_bytes->median) return std::nullopt;
                return whole(*report.peak_bytes->median);
              },
              {"what half of them would need less than", "bytes", "where it is known"});
    table.add(
        "capacity_bytes", capacity_of,
        {"memory of the chip as the driver reports it, which is not the GB of its name", "bytes"});
    table.add("fits",
              [](const StepReport& report) { return peak_of(report).bytes <= capacity_of(report); },
              {"whether peak_bytes is at most that"});
    table.add(
        "fits_certainty",
        [](const StepReport& report) {
          return name_of(
              certainty_of(peak_of(report).bytes, report.peak_bytes, capacity_of(report)));
        },
        {"sure: the upper end of the interval fits, too, or none is known; likely: peak_bytes "
         "alone does; no"});
    table.add("peak_rank", [](const StepReport& report) { return report.run.result.peak_rank; },
              {"which rank needs most"});
    table.add("peak_time_s",
              [](const StepReport& report) { return peak_of(report).at.since_start; },
              {"when", "s"});
    table.add("by_category_bytes", bytes_by_category,
              {"the parts of peak_bytes: parameters, gradients, optimizer, activations, kv_cache "
               "(inference), gathered_parameters (FSDP), buffers (messages in flight, workspace of "
               "running kernels, placeholders of gradients), fixed_overhead (context and "
               "libraries)",
               "bytes"});
    table.add(
        "peak_op",
        [](const StepReport& report) {
          const FinishedRun& run = report.run;
          return text_of_peak(run.graph, run.result.peak_rank, peak_of(report));
        },
        {"the op that held most at that instant: head backward: cross_entropy, micro-batch 0"});
    table.list("by_stage", stage_memory_results(), memory_of_stages,
               {"the rank of each pipeline stage that needs most"});
    table.add("host_peak_bytes", host_peak, {"memory of the fullest host", "bytes", kOffload});
    table.add("host_capacity_bytes",
              [](const StepReport& report) {
                return host_peak(report) ? std::optional(host_capacity(report)) : std::nullopt;
              },
              {"memory of a host", "bytes", kOffload});
    table.add("host_fits",
              [](const StepReport& report) -> std::optional<bool> {
                const auto peak = host_peak(report);
                return peak ? std::optional(*peak <= host_capacity(report)) : std::nullopt;
              },
              {"whether it has room; --require-fit checks it, too", "", kOffload});
    return table;
  }();
  return kTable;
}

const ResultTable<StepEnergy>& energy_results() {
  static const ResultTable<StepEnergy> kTable = [] {
    ResultTable<StepEnergy> table;
    table.add("joules_per_step", &StepEnergy::joules, {"of all chips with a rank, in a step", "J"});
    table.add("joules_per_token", &StepEnergy::joules_per_token,
              {"of a token trained; of a pass: a new token of a request", "J"});
    table.add("mean_watts_per_chip", &StepEnergy::mean_watts_per_chip, {"over the step", "W"});
    table.add("peak_watts_per_chip", &StepEnergy::peak_watts_per_chip,
              {"in the run of kernels that draws most", "W"});
    table.add("idle_watts_per_chip", &StepEnergy::idle_watts_per_chip,
              {"what a chip draws that does nothing", "W"});
    return table;
  }();
  return kTable;
}

// ---- links, ranks, faults ----

struct BusyLink {
  std::string name;
  double utilization = 0;
  std::int64_t bytes = 0;
};

std::vector<BusyLink> busy_links(const StepReport& report) {
  std::vector<BusyLink> links;
  for (const LinkTotal& link : busiest_links(report.run.result, kListedLinks)) {
    links.push_back({std::string(report.run.cluster.fabric.link_name(link.link)), link.utilization,
                     whole(link.bytes)});
  }
  return links;
}

const ResultTable<BusyLink>& link_results() {
  static const ResultTable<BusyLink> kTable = [] {
    ResultTable<BusyLink> table;
    table.add("name", &BusyLink::name, {"from and to"});
    table.add("utilization", &BusyLink::utilization,
              {"share of its bandwidth over the whole run; with --fidelity latency-bandwidth "
               "transfers share nothing, and it may be above 1",
               "0 to 1"});
    table.add("bytes", &BusyLink::bytes, {"that crossed it", "bytes"});
    return table;
  }();
  return kTable;
}

const ResultTable<SlowRank>& slow_rank_results() {
  static const ResultTable<SlowRank> kTable = [] {
    ResultTable<SlowRank> table;
    table.add("rank", &SlowRank::rank, {"its number"});
    table.add("compute_s", &SlowRank::compute, {"how long it computes in a step", "s"});
    table.add("stage_compute_s", &SlowRank::of_stage, {"the mean of its stage", "s"});
    table.add("stage_waits_s", &SlowRank::waited,
              {"by how much longer the other ranks of the stage wait, in the mean", "s"});
    return table;
  }();
  return kTable;
}

const ResultTable<FaultyLink>& faulty_link_results() {
  static const ResultTable<FaultyLink> kTable = [] {
    ResultTable<FaultyLink> table;
    table.add("link", &FaultyLink::name, {"as the fault names it"});
    table.add("capacity", &FaultyLink::capacity, {"remaining share; 0: it is down", "0 to 1"});
    table.add("links", &FaultyLink::links, {"one-way links that it names"});
    table.add("ranks", &FaultyLink::ranks, {"ranks behind it"});
    return table;
  }();
  return kTable;
}

const ResultTable<SlowedTraffic>& slowed_results() {
  static const ResultTable<SlowedTraffic> kTable = [] {
    ResultTable<SlowedTraffic> table;
    table.add("name", &SlowedTraffic::name, {"of the communicator"});
    table.add("axis", [](const SlowedTraffic& one) { return name_of(one.axis); }, {"its axis"});
    table.add("link", &SlowedTraffic::link, {"the link that it waits for"});
    table.add("ranks", &SlowedTraffic::ranks, {"of the group that loses most"});
    table.add("slowed", &SlowedTraffic::slowed, {"groups that lose by the faults"});
    table.add("groups", &SlowedTraffic::groups, {"of so many"});
    table.add("without_s", &SlowedTraffic::without_s,
              {"time of a step without the faults, each collective alone", "s"});
    table.add("with_s", &SlowedTraffic::with_s, {"and with them", "s"});
    return table;
  }();
  return kTable;
}

const ResultTable<FaultEffects>& fault_results() {
  static const ResultTable<FaultEffects> kTable = [] {
    ResultTable<FaultEffects> table;
    table.list("links", faulty_link_results(), &FaultEffects::links, {"the faults"});
    table.list("traffic", slowed_results(), &FaultEffects::traffic, {"what they slow, most first"});
    return table;
  }();
  return kTable;
}

std::vector<std::string> names_of_idle_chips(const StepReport& report) {
  std::vector<std::string> names;
  const Cluster& cluster = report.run.cluster;
  for (const std::uint32_t chip : idle_chips(report.run.graph, cluster)) {
    names.emplace_back(cluster.fabric.node(cluster.places.chips[chip]).name);
  }
  return names;
}

// ---- passes and experts ----

const ResultTable<PassMetrics>& cache_results() {
  static const ResultTable<PassMetrics> kTable = [] {
    ResultTable<PassMetrics> table;
    table.add("bytes_per_token", &PassMetrics::cache_per_token,
              {"what all layers keep of a further token of a request, each value once", "bytes"});
    table.add("bytes", &PassMetrics::cache, {"of all requests after the pass", "bytes"});
    return table;
  }();
  return kTable;
}

const ResultTable<ExpertBalance>& balance_results() {
  static const ResultTable<ExpertBalance> kTable = [] {
    ResultTable<ExpertBalance> table;
    table.add("busiest_rank_over_mean", &ExpertBalance::busiest_over_mean,
              {"copies of tokens at the busiest rank of ep, over the mean"});
    table.add("dropped_copies",
              [](const ExpertBalance& balance) { return whole(balance.dropped_copies); },
              {"copies dropped in a step"});
    table.add("dropped_fraction", &ExpertBalance::dropped_fraction,
              {"their share of all", "0 to 1"});
    return table;
  }();
  return kTable;
}

// ---- simulator ----

const ResultTable<FoldStatistics>& folding_results() {
  static const ResultTable<FoldStatistics> kTable = [] {
    const auto if_folded = [](const auto& count) {
      return [count](const FoldStatistics& folding) {
        return folding.why_not.empty() ? std::optional<std::size_t>(std::invoke(count, folding))
                                       : std::nullopt;
      };
    };
    ResultTable<FoldStatistics> table;
    table.add("ranks", &FoldStatistics::ranks, {"of the plan"});
    table.add("classes", &FoldStatistics::classes,
              {"of ranks that do the same; so many were simulated"});
    table.add("factor", &FoldStatistics::factor, {"ranks / classes"});
    table.add("why_not",
              [](const FoldStatistics& folding) {
                return folding.why_not.empty() ? std::nullopt : std::optional(folding.why_not);
              },
              {"why every rank was simulated", "", "unless ranks were folded"});
    table.add("roles", if_folded(&FoldStatistics::roles),
              {"programs and stages", "", "where ranks were folded"});
    table.add("variations", if_folded(&FoldStatistics::variations),
              {"further classes by stragglers", "", "where ranks were folded"});
    table.add("places", if_folded(&FoldStatistics::places),
              {"further classes by places in the network", "", "where ranks were folded"});
    return table;
  }();
  return kTable;
}

// ---- the whole ----

std::optional<std::vector<Duration>> step_interval(const StepReport& report) {
  if (!report.step_time_s) return std::nullopt;
  return std::vector{nearest_time(report.step_time_s->low), nearest_time(report.step_time_s->high)};
}

std::optional<Duration> step_median(const StepReport& report) {
  if (!report.step_time_s || !report.step_time_s->median) return std::nullopt;
  return nearest_time(*report.step_time_s->median);
}

ByName<Bytes> bytes_by_axis(const StepReport& report) {
  ByName<Bytes> bytes;
  const FinishedRun& run = report.run;
  for (std::size_t i = 0; i < run.graph.axes.size(); ++i) {
    bytes.emplace_back(run.graph.axes[i], run.result.bytes_by_axis[i]);
  }
  return bytes;
}

// The path of a member of the metrics.
template <class Member>
auto metric(Member StepMetrics::*member) {
  return [member](const StepReport& report) { return report.run.metrics.*member; };
}

void add_rates(ResultTable<StepReport>& table) {
  table.add("tokens_per_s", metric(&StepMetrics::tokens_per_s),
            {"global batch x sequence / step time", "1/s"});
  table.add("tokens_per_s_per_chip", metric(&StepMetrics::tokens_per_s_per_chip),
            {"tokens_per_s / chips", "1/s"});
  table.add("model_flops_per_step", metric(&StepMetrics::model_flops),
            {"FLOPs that the model needs, however it is computed", "FLOP"});
  table.add("flops_convention",
            [](const StepReport& report) { return name_of(report.run.metrics.convention); },
            {"causal or full, as --attention-flops says"});
  table.add("peak_flops_per_s_per_chip",
            [](const StepReport& report) { return report.run.metrics.peak_per_chip.value(); },
            {"dense peak of the plan's dtype", "FLOP/s"});
  table.add("model_flops_utilization", metric(&StepMetrics::model_flops_utilization),
            {"MFU: model FLOPs / (step time x chips x peak). Copies of tokens that a capacity "
             "factor drops count as computed",
             "0 to 1"});
  table.add("hardware_flops_utilization", metric(&StepMetrics::hardware_flops_utilization),
            {"HFU: the same with the FLOPs of every kernel that ran", "0 to 1"});
}

void add_what_ran(ResultTable<StepReport>& table) {
  table.add("fidelity",
            [](const StepReport& report) { return name_of(report.run.options.fidelity); },
            {"flow, packet or latency-bandwidth"});
  table.add("granularity",
            [](const StepReport& report) { return name_of(report.run.options.granularity); },
            {"pipelined or stepped"});
  table.add("chips", metric(&StepMetrics::chips), {"chips that hold a rank"});
  table.add("idle_chips",
            [](const StepReport& report) {
              auto names = names_of_idle_chips(report);
              return names.empty() ? std::nullopt : std::optional(std::move(names));
            },
            {"names of the chips that hold no rank", "", "where there are some"});
  table.list("published", published_results(), &StepReport::published,
             {"published figures of this experiment beside simulated ones, in SI base units", "",
              "where something was published, and no flag changes the experiment"});
}

void add_findings(ResultTable<StepReport>& table) {
  table.object("breakdown_s", breakdown_results(), &StepReport::run,
               {"the parts of the step, mean of all ranks; they add up to step_time_s", "s"});
  table.object("kv_cache", cache_results(),
               [](const StepReport& report) { return report.run.metrics.pass; },
               {"what requests keep", "bytes", "of a pass"});
  table.add("memory_bandwidth_utilization",
            [](const StepReport& report) -> std::optional<double> {
              const auto& pass = report.run.metrics.pass;
              return pass ? pass->bandwidth_utilization : std::nullopt;
            },
            {"share of the chips' memory bandwidth that weights and cache take, read once",
             "0 to 1", "of passes that generate, dense models"});
  table.object("experts", balance_results(),
               [](const StepReport& report) { return report.run.metrics.experts; },
               {"load of experts", "", "with a skewed load or a capacity"});
  table.add("placement",
            [](const StepReport& report) -> std::optional<std::vector<std::string>> {
              if (report.placement.empty()) return std::nullopt;
              std::vector<std::string> texts;
              for (const PlacementNote& note : report.placement) texts.push_back(note.text);
              return texts;
            },
            {"sentences on the cost of the ranks' placement", "", "where there are some"});
  table.object("faults", fault_results(),
               [](const StepReport& report) {
                 return report.faults.links.empty() ? nullptr : &report.faults;
               },
               {"what faults of the cluster do", "", "with faults"});
  table.list(
      "slow_ranks", slow_rank_results(),
      [](const StepReport& report) {
        return rank_spread(report.run.graph, report.run.result).slow;
      },
      {"ranks that compute at least 0.5 % longer than the mean of their stage, the three slowest",
       "s", "where there are some"});
  table.list("critical_path", path_results(),
             [](const StepReport& report) { return report.run.result.critical_path; },
             {"longest first; adds up to step_time_s", "s"});
  table.object("memory", memory_results(), std::identity{},
               {"of the rank that needs most, at its peak", "bytes"});
  table.object("energy", energy_results(),
               [](const StepReport& report) { return OrNull{report.energy}; },
               {"of the chips alone; null where the chip doesn't say its power", "J, W"});
  table.object("transport", transport_results(),
               [](const StepReport& report) { return report.run.result.statistics.transport; },
               {"what became of the packets, of all messages of the run", "", "with --transport"});
  table.list("links", link_results(), busy_links, {"the ten busiest over the whole run"});
  table.add("bytes_by_axis", bytes_by_axis,
            {"what all ranks send in a step: an all-gather or reduce-scatter of N bytes in a group "
             "of n sends (n - 1) N, an all-reduce 2 (n - 1) N, a message its size. A byte counts "
             "once, however many links it crosses",
             "bytes"});
}

}  // namespace

const ResultTable<TransportTotals>& transport_results() {
  static const ResultTable<TransportTotals> kTable = [] {
    using Totals = TransportTotals;
    ResultTable<Totals> table;
    table.add("packets", &Totals::packets, {"of data, with those that were sent again"});
    table.add("marked", &Totals::marked, {"by switches on their way"});
    table.add("trimmed", &Totals::trimmed, {"to their headers"});
    table.add("dropped", &Totals::dropped, {"for want of room, or lost on a link"});
    table.add("retransmitted", &Totals::repeated, {"sent again"});
    table.add("pauses", &Totals::pauses, {"of links, by the switch behind them"});
    table.add("paused_s", &Totals::paused, {"of all links together", "s"});
    table.add("peak_queue_bytes", &Totals::peak_queue, {"data in the longest queue", "bytes"});
    return table;
  }();
  return kTable;
}

const ResultTable<StepReport>& step_results() {
  static const ResultTable<StepReport> kTable = [] {
    ResultTable<StepReport> table;
    table.add("name", [](const StepReport& report) { return report.run.experiment.name; },
              {"of the experiment; MODEL-CLUSTER if --model or --cluster replaced its own"});
    table.add("step_time_s", metric(&StepMetrics::step_time), {"time of one step", "s"});
    table.add("step_time_interval_s", step_interval,
              {"[low, high]: where 8 of 10 measured runs in the same situation would lie", "s",
               "where it is known"});
    table.add("step_time_median_s", step_median,
              {"what half of them would take less than", "s", "where it is known"});
    table.add("steps", [](const StepReport& report) { return report.run.result.steps; },
              {"steps simulated"});
    add_rates(table);
    add_what_ran(table);
    add_findings(table);
    table.add("experiment",
              [](const StepReport& report) {
                return report.experiment_json.empty()
                           ? std::nullopt
                           : std::optional(RawJson{report.experiment_json});
              },
              {"what was run, complete enough to run it again: stepsim run RESULT.json"});
    table.object("explain", explanation_results(), &StepReport::explanation,
                 {"the formulas of the books beside the run", "", "with --explain"});
    return table;
  }();
  return kTable;
}

const ResultTable<SimulatorStatistics>& simulator_results() {
  static const ResultTable<SimulatorStatistics> kTable = [] {
    using Statistics = SimulatorStatistics;
    ResultTable<Statistics> table;
    table.add("ops", &Statistics::ops,
              {"ops that ended, of the ranks that were simulated; with those of periods that only "
               "repeat others"});
    table.add("events", &Statistics::events,
              {"events from the queue or the network that were simulated"});
    table.add("rate_updates", &Statistics::rate_updates,
              {"changes of a transfer's rate; 0 without contention"});
    table.add("packet_hops", &Statistics::packet_hops, {"packets times links; 0 without packets"});
    table.object(
        "folding", folding_results(),
        [](const Statistics& one) { return one.folding.ranks > 0 ? &one.folding : nullptr; },
        {"ranks that do the same are simulated once", "", "where it was tried"});
    table.add("wall_s", &Statistics::wall_s, {"wall clock of the simulation", "s"});
    table.add("cpu_s", &Statistics::cpu_s, {"CPU clock of the process", "s"});
    table.add("peak_rss_bytes", &Statistics::peak_rss_bytes,
              {"peak memory of the process so far", "bytes"});
    return table;
  }();
  return kTable;
}

std::string result_json(const StepReport& report) {
  static const ResultTable<StepReport> kTable = [] {
    ResultTable<StepReport> table;
    table.include(step_results(), std::identity{});
    table.object("simulator", simulator_results(),
                 [](const StepReport& one) { return &one.run.result.statistics; },
                 {"the simulation alone"});
    return table;
  }();
  return kTable.json(report) + '\n';
}

}  // namespace stepsim
