#include <algorithm>
#include <functional>

#include "traces/results/serving_report.h"

namespace stepsim {
namespace {

const ResultTable<TimeSpread>& spread_results() {
  static const ResultTable<TimeSpread> kTable = [] {
    const auto time = [](Duration TimeSpread::*member) {
      return [member](const TimeSpread& spread) {
        return OrNull{spread.count == 0 ? std::nullopt : std::optional(spread.*member)};
      };
    };
    ResultTable<TimeSpread> table;
    table.add("mean", time(&TimeSpread::mean), {"null where there are none", "s"});
    table.add("p50", time(&TimeSpread::p50), {"half are at most this", "s"});
    table.add("p90", time(&TimeSpread::p90), {"nine of ten are", "s"});
    table.add("p99", time(&TimeSpread::p99), {"99 of 100 are", "s"});
    return table;
  }();
  return kTable;
}

// Requests of a whole run, of a tenant or of a model.
struct ServedPart {
  const ServingOutcome* run;
  const ServingMetrics* metrics;
  std::int64_t chips = 1;
  std::size_t index = 0;  // of the tenant or the model

  bool is_whole() const { return metrics == &run->metrics; }
};

ByName<Duration> parts_of_requests(const ServedPart& part) {
  ByName<Duration> parts;
  for (std::size_t i = 0; i < kRequestParts; ++i) {
    parts.emplace_back(name_of(static_cast<RequestPart>(i)), part.metrics->parts[i]);
  }
  return parts;
}

const ResultTable<ServedPart>& part_of_serving_results() {
  static const ResultTable<ServedPart> kTable = [] {
    const auto spread = [](TimeSpread ServingMetrics::*member) {
      return [member](const ServedPart& part) { return part.metrics->*member; };
    };
    const auto a_second = [](std::int64_t ServingMetrics::*member) {
      return [member](const ServedPart& part) {
        return part.metrics->per_second(part.metrics->*member);
      };
    };
    ResultTable<ServedPart> table;
    table.object("ttft_s", spread_results(), spread(&ServingMetrics::ttft),
                 {"time to the first token", "s"});
    table.object("tpot_s", spread_results(), spread(&ServingMetrics::tpot),
                 {"time of an output token after the first, of requests with two and more", "s"});
    table.object("inter_token_s", spread_results(),
                 [](const ServedPart& part) {
                   return part.metrics->inter_token.count > 0 || part.is_whole()
                              ? std::optional(part.metrics->inter_token)
                              : std::nullopt;
                 },
                 {"gaps between two tokens", "s", "of a whole run"});
    table.object("end_to_end_s", spread_results(), spread(&ServingMetrics::end_to_end),
                 {"from arrival to the last token", "s"});
    table.add("output_tokens_per_s", a_second(&ServingMetrics::output_tokens),
              {"of all replicas", "1/s"});
    table.add("output_tokens_per_s_per_chip",
              [](const ServedPart& part) {
                return part.metrics->per_second(part.metrics->output_tokens) /
                       static_cast<double>(part.chips);
              },
              {"of each chip", "1/s"});
    table.add("requests_per_s", a_second(&ServingMetrics::requests), {"that ended", "1/s"});
    table.add("goodput_requests_per_s",
              [](const ServedPart& part) {
                const ServingMetrics& metrics = *part.metrics;
                return OrNull{has_objective(part.run->objective)
                                  ? std::optional(metrics.per_second(metrics.good_requests))
                                  : std::nullopt};
              },
              {"that met the objective; null without one", "1/s"});
    table.add("parts_s", parts_of_requests,
              {"where the time of a request goes: queue, prefill, preempted, transfer, decode; "
               "they add up to the mean end to end",
               "s"});
    return table;
  }();
  return kTable;
}

std::vector<ServedPart> tenants_of(const ServingOutcome& run) {
  std::vector<ServedPart> parts;
  for (std::size_t i = 0; i < run.tenants.size(); ++i) {
    const std::size_t model = run.requests.tenants[i].model;
    const std::int64_t chips = run.models.empty() ? run.chips : run.models[model].chips;
    parts.push_back({&run, &run.tenants[i], chips, i});
  }
  return parts;
}

std::vector<ServedPart> models_of(const ServingOutcome& run) {
  std::vector<ServedPart> parts;
  for (std::size_t i = 0; i < run.models.size(); ++i) {
    parts.push_back({&run, &run.models[i].metrics, run.models[i].chips, i});
  }
  return parts;
}

std::int64_t requests_of_part(const ServedPart& part) {
  return part.metrics->requests;
}

const ResultTable<ServedPart>& tenant_results() {
  static const ResultTable<ServedPart> kTable = [] {
    ResultTable<ServedPart> table;
    table.include(part_of_serving_results(), std::identity{});
    table.add("tenant",
              [](const ServedPart& part) { return part.run->requests.tenants[part.index].name; },
              {"its name"});
    table.add("requests", requests_of_part, {"that ended"});
    return table;
  }();
  return kTable;
}

std::vector<std::size_t> replicas_of_model(const ServedPart& part) {
  std::vector<std::size_t> replicas;
  const auto& all = part.run->result.replicas;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].model == part.index) replicas.push_back(i);
  }
  return replicas;
}

std::int64_t blocks_of_model(const ServedPart& part) {
  std::int64_t total = 0;
  for (const std::size_t i : replicas_of_model(part)) {
    total += part.run->result.replicas[i].kv_blocks;
  }
  return total;
}

const ResultTable<ServedPart>& served_model_results() {
  static const ResultTable<ServedPart> kTable = [] {
    const auto model = [](auto member) {
      return [member](const ServedPart& part) { return part.run->models[part.index].*member; };
    };
    ResultTable<ServedPart> table;
    table.add("model", model(&ServedModelOutcome::name), {"its name"});
    table.add("asked",
              [](const ServedPart& part) { return RawJson{part.run->models[part.index].asked}; },
              {"the options that are this model's"});
    table.add("engine", model(&ServedModelOutcome::engine), {"that schedules it"});
    table.add("chips", model(&ServedModelOutcome::chips), {"of all its replicas"});
    table.include(part_of_serving_results(), std::identity{});
    table.add("replicas", replicas_of_model, {"numbers of its replicas"});
    table.add("kv_blocks", blocks_of_model, {"of its replicas together"});
    table.add("requests", requests_of_part, {"that ended"});
    return table;
  }();
  return kTable;
}

// Blocks that there are, and the most that were used at once.
struct BlockCounts {
  std::int64_t total = 0;
  std::int64_t peak = 0;
};

const ResultTable<BlockCounts>& block_results() {
  static const ResultTable<BlockCounts> kTable = [] {
    ResultTable<BlockCounts> table;
    table.add("total", &BlockCounts::total, {"that there are"});
    table.add("peak", &BlockCounts::peak, {"the most that were used at once"});
    return table;
  }();
  return kTable;
}

const ResultTable<ReplicaTotals>& replica_results() {
  static const ResultTable<ReplicaTotals> kTable = [] {
    ResultTable<ReplicaTotals> table;
    table.add("prefill", &ReplicaTotals::is_prefill, {"whether it does prompts alone"});
    table.add("steps", &ReplicaTotals::steps, {"of its engine"});
    table.add("busy_s", &ReplicaTotals::busy, {"time of its steps", "s"});
    table.add("preemptions", &ReplicaTotals::preemptions, {"of requests"});
    table.object("kv_blocks", block_results(),
                 [](const ReplicaTotals& replica) {
                   return BlockCounts{replica.kv_blocks, replica.peak_kv_blocks};
                 },
                 {"its cache"});
    table.add("backlog_peak", &ReplicaTotals::peak_backlog, {"most requests that waited at once"});
    return table;
  }();
  return kTable;
}

const ResultTable<HostTierTotals>& host_results() {
  static const ResultTable<HostTierTotals> kTable = [] {
    ResultTable<HostTierTotals> table;
    table.add("total", &HostTierTotals::blocks, {"blocks in the hosts' memory"});
    table.add("peak", &HostTierTotals::peak, {"the most that were used at once"});
    table.add("written", &HostTierTotals::written, {"blocks that went there"});
    table.add("read", &HostTierTotals::read, {"blocks that came back"});
    table.add("dropped", &HostTierTotals::dropped, {"blocks that made room"});
    return table;
  }();
  return kTable;
}

const ResultTable<LoadTimeline>& load_results() {
  static const ResultTable<LoadTimeline> kTable = [] {
    const auto bins = [](std::int64_t Load::*member) {
      return [member](const LoadTimeline& load) {
        std::vector<std::int64_t> values;
        for (const Load& bin : load.bins()) values.push_back(bin.*member);
        return values;
      };
    };
    ResultTable<LoadTimeline> table;
    table.add("bin_s", &LoadTimeline::width, {"width of a bin", "s"});
    table.add("running", bins(&Load::running), {"requests in steps, bin by bin"});
    table.add("waiting", bins(&Load::waiting), {"requests that wait"});
    table.add("kv_blocks", bins(&Load::kv_blocks), {"blocks in use"});
    return table;
  }();
  return kTable;
}

// Returns the 0 th to 100 th percentile, by nearest rank.
std::vector<Duration> percentiles_of(const std::vector<Duration>& ascending) {
  std::vector<Duration> percentiles;
  for (std::size_t i = 0; i <= 100 && !ascending.empty(); ++i) {
    const std::size_t rank = std::max<std::size_t>((i * ascending.size() + 99) / 100, 1);
    percentiles.push_back(ascending[rank - 1]);
  }
  return percentiles;
}

// The same of counted gaps.
std::vector<Duration> percentiles_of_gaps(GapCounts gaps) {
  std::int64_t all = 0;
  for (const GapCounts::Count& count : gaps.sorted()) all += count.count;
  std::vector<Duration> percentiles;
  auto at = gaps.sorted().begin();
  std::int64_t until = all > 0 ? at->count : 0;  // gaps up to this length
  for (std::int64_t i = 0; i <= 100 && all > 0; ++i) {
    const std::int64_t rank = std::max<std::int64_t>((i * all + 99) / 100, 1);
    while (until < rank) until += (++at)->count;
    percentiles.push_back(at->gap);
  }
  return percentiles;
}

// Returns the percentiles of a time of all requests. `time` returns nullopt of those without it.
template <class Time>
auto percentiles_of_requests(Time time) {
  return [time](const ServingResult& result) {
    std::vector<Duration> times;
    for (const RequestRecord& record : result.requests) {
      if (const std::optional<Duration> one = time(record)) times.push_back(*one);
    }
    std::ranges::sort(times);
    return percentiles_of(times);
  };
}

const ResultTable<ServingResult>& quantile_results() {
  static const ResultTable<ServingResult> kTable = [] {
    using Time = std::optional<Duration>;
    ResultTable<ServingResult> table;
    table.add("ttft_s", percentiles_of_requests([](const RequestRecord& record) -> Time {
                return record.time_to_first_token();
              }),
              {"0th to 100th percentile, by nearest rank", "s"});
    table.add("tpot_s", percentiles_of_requests([](const RequestRecord& record) -> Time {
                if (record.tokens <= 1) return std::nullopt;
                return record.time_per_output_token();
              }),
              {"the same", "s"});
    table.add("inter_token_s",
              [](const ServingResult& result) { return percentiles_of_gaps(result.gaps); },
              {"the same", "s"});
    table.add("end_to_end_s", percentiles_of_requests([](const RequestRecord& record) -> Time {
                return record.end_to_end();
              }),
              {"the same", "s"});
    return table;
  }();
  return kTable;
}

// The part of a run between its start and its end, and the objective.
struct SteadyPart {
  const SteadyState* steady;
  bool has_objective = false;
};

const ResultTable<SteadyPart>& steady_results() {
  static const ResultTable<SteadyPart> kTable = [] {
    const auto when = [](Time SteadyState::*member) {
      return [member](const SteadyPart& part) { return (part.steady->*member).since_start; };
    };
    const auto rate = [](auto member) {
      return [member](const SteadyPart& part) {
        return part.steady->per_second(part.steady->*member);
      };
    };
    const auto of = [](auto member) {
      return [member](const SteadyPart& part) { return part.steady->*member; };
    };
    ResultTable<SteadyPart> table;
    table.add("from_s", when(&SteadyState::from), {"warm-up is before", "s"});
    table.add("until_s", when(&SteadyState::until), {"the drain is behind", "s"});
    table.add("requests", of(&SteadyState::requests), {"that come between"});
    table.add("arrivals_per_s", rate(&SteadyState::requests), {"that come", "1/s"});
    table.add("requests_per_s", rate(&SteadyState::answered), {"that are answered", "1/s"});
    table.add("output_tokens_per_s", rate(&SteadyState::output_tokens), {"of them", "1/s"});
    table.object("ttft_s", spread_results(), of(&SteadyState::ttft),
                 {"time to the first token", "s"});
    table.object("tpot_s", spread_results(), of(&SteadyState::tpot),
                 {"time of a further token", "s"});
    table.add("good_share",
              [](const SteadyPart& part) {
                return OrNull{part.has_objective ? std::optional(part.steady->good_share())
                                                 : std::nullopt};
              },
              {"requests that met the objective; null without one", "0 to 1"});
    table.add("growth_per_s", of(&SteadyState::growth_per_s),
              {"by how many requests more wait every second", "1/s"});
    table.add("sustained", of(&SteadyState::is_sustained), {"whether the load can go on"});
    return table;
  }();
  return kTable;
}

const ResultTable<ServingResult>& draft_results() {
  static const ResultTable<ServingResult> kTable = [] {
    ResultTable<ServingResult> table;
    table.add("tried", &ServingResult::drafts_tried, {"tokens that were drafted"});
    table.add("accepted", &ServingResult::drafts_accepted, {"of them"});
    return table;
  }();
  return kTable;
}

const ResultTable<ServingOutcome>& cost_of_serving_results() {
  static const ResultTable<ServingOutcome> kTable = [] {
    ResultTable<ServingOutcome> table;
    table.add("events", [](const ServingOutcome& run) { return run.result.steps; }, {"steps"});
    table.add("wall_s", &ServingOutcome::wall_s, {"wall clock", "s"});
    table.add("cpu_s", &ServingOutcome::cpu_s, {"CPU clock", "s"});
    table.add("peak_rss_bytes", &ServingOutcome::peak_rss_bytes, {"peak memory", "bytes"});
    return table;
  }();
  return kTable;
}

void add_totals(ResultTable<ServingOutcome>& table) {
  const auto result = [](auto member) {
    return [member](const ServingOutcome& run) { return run.result.*member; };
  };
  table.add("asked",
            [](const ServingOutcome& run) { return RawJson{run.asked.empty() ? "{}" : run.asked}; },
            {"the command's words and options"});
  table.add("requests", [](const ServingOutcome& run) { return run.metrics.requests; },
            {"that ended"});
  table.add("steps", result(&ServingResult::steps), {"of all engines"});
  table.add(
      "engine",
      [](const ServingOutcome& run) { return std::string_view(run.options.replicas.engine->name); },
      {"that schedules"});
  table.add("chips", &ServingOutcome::chips, {"of all replicas"});
  table.add("kernels_of", [](const ServingOutcome& run) { return OrNull{given(run.borrowed)}; },
            {"the chip whose kernels were measured in place of this one's; null: its own"});
  table.add("duration_s", [](const ServingOutcome& run) { return run.metrics.length; },
            {"from the first arrival to the last token", "s"});
  table.add("output_tokens", [](const ServingOutcome& run) { return run.metrics.output_tokens; },
            {"of all requests"});
  table.include(part_of_serving_results(), [](const ServingOutcome& run) {
    return ServedPart{&run, &run.metrics, run.chips};
  });
  table.add("preemptions", result(&ServingResult::preemptions), {"of requests"});
  table.object("kv_blocks", block_results(),
               [](const ServingOutcome& run) {
                 return BlockCounts{run.result.kv_blocks, run.result.peak_kv_blocks};
               },
               {"cache of all replicas"});
  table.add("prefix_hit_tokens", result(&ServingResult::hit_tokens), {"found in a cache"});
  table.add("host_hit_tokens", result(&ServingResult::host_hit_tokens),
            {"of them fetched from the hosts' memory"});
  table.object("host_blocks", host_results(),
               [](const ServingOutcome& run) { return host_totals(run.result); },
               {"caches in the hosts' memory"});
  table.object("drafts", draft_results(), &ServingOutcome::result, {"speculative decoding"});
}

void add_lists(ResultTable<ServingOutcome>& table) {
  table.object("steady_state", steady_results(),
               [](const ServingOutcome& run) -> OrNull<SteadyPart> {
                 if (!run.steady) return {};
                 return {SteadyPart{&*run.steady, has_objective(run.objective)}};
               },
               {"without warm-up and drain; null if the run is too short to have one"});
  table.list("models", served_model_results(), models_of, {"each of several models"});
  table.list("tenants", tenant_results(), tenants_of, {"each of several tenants"});
  table.list("replicas", replica_results(),
             [](const ServingOutcome& run) { return run.result.replicas; }, {"each replica"});
  table.object("load", load_results(), [](const ServingOutcome& run) { return run.result.load; },
               {"over time"});
  table.object("quantiles_s", quantile_results(), &ServingOutcome::result,
               {"of the requests' times", "s"});
  table.object("simulator", cost_of_serving_results(), std::identity{}, {"the simulation alone"});
}

}  // namespace

const ResultTable<ServingOutcome>& serving_results() {
  static const ResultTable<ServingOutcome> kTable = [] {
    ResultTable<ServingOutcome> table;
    add_totals(table);
    add_lists(table);
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
