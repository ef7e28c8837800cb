#include "traces/serving_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sim/base/quantity_text.h"
#include "sim/base/shown_text.h"
#include "traces/json_text.h"
#include "traces/report_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kFlushCsvAt = std::size_t{1} << 16;
constexpr std::size_t kListedTenants = 20;

bool has_objective(const ServiceObjective& objective) {
  return objective.ttft || objective.tpot || objective.end_to_end;
}

std::string spread_json(const TimeSpread& spread) {
  if (spread.count == 0) {
    return R"({"mean": null, "p50": null, "p90": null, "p99": null})";
  }
  return fmt::format(R"({{"mean": {}, "p50": {}, "p90": {}, "p99": {}}})",
                     exact_seconds(spread.mean), exact_seconds(spread.p50),
                     exact_seconds(spread.p90), exact_seconds(spread.p99));
}

std::string parts_json(const ServingMetrics& metrics) {
  std::string text;
  for (std::size_t i = 0; i < kRequestParts; ++i) {
    text += fmt::format("{}\"{}\": {}", i == 0 ? "{" : ", ", name_of(static_cast<RequestPart>(i)),
                        exact_seconds(metrics.parts[i]));
  }
  return text + "}";
}

// The lines that a whole run and each tenant have.
std::string metrics_json(const ServingMetrics& metrics, const ServingOutcome& run,
                         std::int64_t chips, std::string_view indent) {
  const double tokens = metrics.per_second(metrics.output_tokens);
  const auto field = [indent](std::string_view name, const std::string& value) {
    return fmt::format("{}\"{}\": {},\n", indent, name, value);
  };
  return field("ttft_s", spread_json(metrics.ttft)) + field("tpot_s", spread_json(metrics.tpot)) +
         (metrics.inter_token.count > 0 || &metrics == &run.metrics
              ? field("inter_token_s", spread_json(metrics.inter_token))
              : "") +
         field("end_to_end_s", spread_json(metrics.end_to_end)) +
         field("output_tokens_per_s", json_number(tokens)) +
         field("output_tokens_per_s_per_chip", json_number(tokens / static_cast<double>(chips))) +
         field("requests_per_s", json_number(metrics.per_second(metrics.requests))) +
         field("goodput_requests_per_s",
               has_objective(run.objective) ? json_number(metrics.per_second(metrics.good_requests))
                                            : "null") +
         field("parts_s", parts_json(metrics));
}

std::string tenants_json(const ServingOutcome& run) {
  std::string text = "[";
  for (std::size_t i = 0; i < run.tenants.size(); ++i) {
    const std::size_t model = run.requests.tenants[i].model;
    const std::int64_t chips = run.models.empty() ? run.chips : run.models[model].chips;
    text += fmt::format("{}\n    {{\n{}      \"tenant\": \"{}\",\n      \"requests\": {}\n    }}",
                        i == 0 ? "" : ",", metrics_json(run.tenants[i], run, chips, "      "),
                        json_escaped(run.requests.tenants[i].name), run.tenants[i].requests);
  }
  return text + (run.tenants.empty() ? "]" : "\n  ]");
}

std::string models_json(const ServingOutcome& run) {
  std::string text = "[";
  for (std::size_t i = 0; i < run.models.size(); ++i) {
    const ServedModelOutcome& model = run.models[i];
    std::int64_t total = 0;
    std::string replicas;
    for (std::size_t k = 0; k < run.result.replicas.size(); ++k) {
      const ReplicaTotals& replica = run.result.replicas[k];
      if (replica.model != i) continue;
      total += replica.kv_blocks;
      replicas += fmt::format("{}{}", replicas.empty() ? "" : ", ", k);
    }
    text += fmt::format(
        "{}\n    {{\n      \"model\": \"{}\",\n      \"asked\": {},\n      \"engine\": "
        "\"{}\",\n      \"chips\": {},\n"
        "{}      \"replicas\": [{}],\n      \"kv_blocks\": {},\n      \"requests\": {}\n    }}",
        i == 0 ? "" : ",", json_escaped(model.name), model.asked, model.engine, model.chips,
        metrics_json(model.metrics, run, model.chips, "      "), replicas, total,
        model.metrics.requests);
  }
  return text + (run.models.empty() ? "]" : "\n  ]");
}

std::string replicas_json(const ServingOutcome& run) {
  std::string text = "[";
  for (const ReplicaTotals& replica : run.result.replicas) {
    text += fmt::format(
        "{}\n    {{\"prefill\": {}, \"steps\": {}, \"busy_s\": {}, \"preemptions\": {}, "
        "\"kv_blocks\": {{\"total\": {}, \"peak\": {}}}, \"backlog_peak\": {}}}",
        text.back() == '[' ? "" : ",", replica.is_prefill, replica.steps,
        exact_seconds(replica.busy), replica.preemptions, replica.kv_blocks, replica.peak_kv_blocks,
        replica.peak_backlog);
  }
  return text + "\n  ]";
}

// Returns the sums over all replicas.
HostTierTotals host_totals(const ServingResult& result) {
  HostTierTotals sum;
  for (const ReplicaTotals& replica : result.replicas) {
    sum.blocks += replica.host.blocks;
    sum.peak += replica.host.peak;
    sum.written += replica.host.written;
    sum.read += replica.host.read;
    sum.dropped += replica.host.dropped;
  }
  return sum;
}

std::string host_json(const ServingResult& result) {
  const HostTierTotals host = host_totals(result);
  return fmt::format(
      "{{\"total\": {}, \"peak\": {}, \"written\": {}, \"read\": {}, \"dropped\": {}}}",
      host.blocks, host.peak, host.written, host.read, host.dropped);
}

std::string load_json(const LoadTimeline& load) {
  const auto list = [&load](std::int64_t Load::*what) {
    std::string text = "[";
    for (const Load& bin : load.bins()) {
      text += fmt::format("{}{}", text.back() == '[' ? "" : ", ", bin.*what);
    }
    return text + "]";
  };
  return fmt::format(
      "{{\"bin_s\": {},\n    \"running\": {},\n    \"waiting\": {},\n    \"kv_blocks\": {}}}",
      exact_seconds(load.width()), list(&Load::running), list(&Load::waiting),
      list(&Load::kv_blocks));
}

// Returns the 0 th to 100 th percentile, by nearest rank.
std::string percentiles_json(const std::vector<Duration>& ascending) {
  std::string text = "[";
  for (std::size_t i = 0; i <= 100 && !ascending.empty(); ++i) {
    const std::size_t rank = std::max<std::size_t>((i * ascending.size() + 99) / 100, 1);
    text += (i == 0 ? "" : ", ") + exact_seconds(ascending[rank - 1]);
  }
  return text + "]";
}

// The same of counted gaps.
std::string percentiles_json(GapCounts gaps) {
  std::int64_t all = 0;
  for (const GapCounts::Count& count : gaps.sorted()) all += count.count;
  std::string text = "[";
  auto at = gaps.sorted().begin();
  std::int64_t until = all > 0 ? at->count : 0;  // gaps up to this length
  for (std::int64_t i = 0; i <= 100 && all > 0; ++i) {
    const std::int64_t rank = std::max<std::int64_t>((i * all + 99) / 100, 1);
    while (until < rank) until += (++at)->count;
    text += (i == 0 ? "" : ", ") + exact_seconds(at->gap);
  }
  return text + "]";
}

std::string quantiles_json(const ServingOutcome& run) {
  std::vector<Duration> ttft;
  std::vector<Duration> tpot;
  std::vector<Duration> end_to_end;
  for (const RequestRecord& record : run.result.requests) {
    ttft.push_back(record.time_to_first_token());
    if (record.tokens > 1) tpot.push_back(record.time_per_output_token());
    end_to_end.push_back(record.end_to_end());
  }
  for (auto* const values : {&ttft, &tpot, &end_to_end}) std::ranges::sort(*values);
  return fmt::format(
      "{{\n    \"ttft_s\": {},\n    \"tpot_s\": {},\n    \"inter_token_s\": {},\n"
      "    \"end_to_end_s\": {}}}",
      percentiles_json(ttft), percentiles_json(tpot), percentiles_json(run.result.gaps),
      percentiles_json(end_to_end));
}

void add_spread(ReportText& text, std::string_view name, const TimeSpread& spread) {
  if (spread.count == 0) return;
  text.line("  {:<{}}{:>12}{:>12}{:>12}{:>12}", name, kReportLabel, to_text(spread.mean),
            to_text(spread.p50), to_text(spread.p90), to_text(spread.p99));
}

void add_parts(ReportText& text, const ServingMetrics& metrics) {
  text.section("Where the time of a request goes");
  for (std::size_t i = 0; i < kRequestParts; ++i) {
    const Duration part = metrics.parts[i];
    if (part == Duration()) continue;
    text.line("  {:<{}}{:>12}{:>10.1f} %", name_of(static_cast<RequestPart>(i)), kReportLabel,
              to_text(part), 100 * to_seconds(part) / to_seconds(metrics.end_to_end.mean));
  }
}

void add_tenants(ReportText& text, const ServingOutcome& run) {
  if (run.tenants.empty()) return;
  text.section("Tenants", "requests  ttft p50  tpot p50  end to end p50");
  for (std::size_t i = 0; i < run.tenants.size() && i < kListedTenants; ++i) {
    const ServingMetrics& metrics = run.tenants[i];
    text.line("  {:<{}}{:>10}{:>12}{:>12}{:>12}", run.requests.tenants[i].name.substr(0, 20),
              kReportLabel, metrics.requests, to_text(metrics.ttft.p50), to_text(metrics.tpot.p50),
              to_text(metrics.end_to_end.p50));
  }
}

void add_models(ReportText& text, const ServingOutcome& run) {
  if (run.models.empty()) return;
  text.section("Models", "   chips    requests  ttft p50  tpot p50  tokens/s/chip");
  for (const ServedModelOutcome& model : run.models) {
    const ServingMetrics& metrics = model.metrics;
    text.line("  {:<{}}{:>8}{:>12}{:>12}{:>12}{:>12.6g}", model.name.substr(0, 20), kReportLabel,
              model.chips, metrics.requests, to_text(metrics.ttft.p50), to_text(metrics.tpot.p50),
              metrics.per_second(metrics.output_tokens) / static_cast<double>(model.chips));
  }
}

void add_throughput(ReportText& text, const ServingOutcome& run) {
  const ServingMetrics& metrics = run.metrics;
  text.section("Throughput");
  text.line("  {:<{}}{:>12.6g} a second", "output tokens", kReportLabel,
            metrics.per_second(metrics.output_tokens));
  text.line("  {:<{}}{:>12.6g} a second", "requests", kReportLabel,
            metrics.per_second(metrics.requests));
  if (has_objective(run.objective)) {
    text.line(
        "  {:<{}}{:>12.6g} a second ({:.1f} % of the requests)", "goodput", kReportLabel,
        metrics.per_second(metrics.good_requests),
        100 * static_cast<double>(metrics.good_requests) / static_cast<double>(metrics.requests));
  }
}

// Says whether the load can go on, which no figure of the whole run does.
void add_steady_state(ReportText& text, const ServingOutcome& run) {
  if (!run.steady) return;
  const SteadyState& steady = *run.steady;
  text.section("Steady state",
               fmt::format("requests that come from {} to {}", to_text(steady.from.since_start),
                           to_text(steady.until.since_start)));
  const double comes = steady.per_second(steady.requests);
  const double answered = steady.per_second(steady.answered);
  if (steady.is_sustained) {
    text.line("  {:<{}}{:>12.6g} requests a second", "sustained", kReportLabel, answered);
  } else {
    text.line(
        "  {:<{}}{:>12.6g} of {:.6g} requests a second are answered, {:.3g} more wait every "
        "second: "
        "all above depends on count",
        "not sustained", kReportLabel, answered, comes, steady.growth_per_s);
  }
  text.line("  {:<{}}{:>12.6g} a second", "output tokens", kReportLabel,
            steady.per_second(steady.output_tokens));
  add_spread(text, "to the first token", steady.ttft);
  add_spread(text, "an output token", steady.tpot);
  if (has_objective(run.objective)) {
    text.line("  {:<{}}{:>12.1f} % of the requests", "within the objective", kReportLabel,
              100 * steady.good_share());
  }
}

std::string steady_state_json(const ServingOutcome& run) {
  if (!run.steady) return "null";
  const SteadyState& steady = *run.steady;
  return fmt::format(
      "{{\"from_s\": {}, \"until_s\": {}, \"requests\": {}, \"arrivals_per_s\": {}, "
      "\"requests_per_s\": {}, \"output_tokens_per_s\": {},\n    \"ttft_s\": {},\n    "
      "\"tpot_s\": {},\n    \"good_share\": {}, \"growth_per_s\": {}, \"sustained\": {}}}",
      exact_seconds(steady.from.since_start), exact_seconds(steady.until.since_start),
      steady.requests, json_number(steady.per_second(steady.requests)),
      json_number(steady.per_second(steady.answered)),
      json_number(steady.per_second(steady.output_tokens)), spread_json(steady.ttft),
      spread_json(steady.tpot),
      has_objective(run.objective) ? json_number(steady.good_share()) : std::string("null"),
      json_number(steady.growth_per_s), steady.is_sustained);
}

void add_engine(ReportText& text, const ServingOutcome& run) {
  const ServingResult& result = run.result;
  text.section("Replicas");
  if (!run.borrowed.empty()) {
    text.line("  kernels as measured on {}: none of this chip were, times are less certain",
              run.borrowed);
  }
  text.line("  {:<{}}{:>12}", "steps", kReportLabel, grouped(result.steps));
  text.line("  {:<{}}{:>12} of {}", "KV blocks at the peak", kReportLabel,
            grouped(result.peak_kv_blocks), grouped(result.kv_blocks));
  text.line("  {:<{}}{:>12}", "preemptions", kReportLabel, grouped(result.preemptions));
  if (result.hit_tokens > 0) {
    text.line("  {:<{}}{:>12} tokens", "found in the cache", kReportLabel,
              grouped(result.hit_tokens));
  }
  const HostTierTotals host = host_totals(result);
  if (host.blocks > 0) {
    text.line("  {:<{}}{:>12} tokens, from the host's memory", "of them fetched", kReportLabel,
              grouped(result.host_hit_tokens));
    text.line("  {:<{}}{:>12} of {}, {} written, {} dropped", "host blocks at the peak",
              kReportLabel, grouped(host.peak), grouped(host.blocks), grouped(host.written),
              grouped(host.dropped));
  }
  if (result.drafts_tried > 0) {
    text.line("  {:<{}}{:>12} of {}", "drafts accepted", kReportLabel,
              grouped(result.drafts_accepted), grouped(result.drafts_tried));
  }
}

}  // namespace

std::string serving_report(const ServingOutcome& run, bool color) {
  ReportText text(color);
  const ServingMetrics& metrics = run.metrics;
  const std::size_t replicas = run.result.replicas.size();
  text.line("{} requests on {} replica{} of {}: {} in all", grouped(metrics.requests), replicas,
            replicas == 1 ? "" : "s", run.options.replicas.engine->name, to_text(metrics.length));
  text.section("Times", "      mean         p50         p90         p99");
  add_spread(text, "to the first token", metrics.ttft);
  add_spread(text, "an output token", metrics.tpot);
  add_spread(text, "between tokens", metrics.inter_token);
  add_spread(text, "end to end", metrics.end_to_end);
  add_parts(text, metrics);
  add_models(text, run);
  add_tenants(text, run);
  add_throughput(text, run);
  add_steady_state(text, run);
  add_engine(text, run);
  text.blank();
  text.line("simulated in {:.3g} s CPU, {} at the peak", run.cpu_s,
            to_text(Bytes(run.peak_rss_bytes)));
  return text.text();
}

std::string serving_json(const ServingOutcome& run) {
  const ServingResult& result = run.result;
  return fmt::format(
      "{{\n  \"asked\": {},\n  \"requests\": {},\n  \"steps\": {},\n  \"engine\": \"{}\",\n  "
      "\"chips\": {},\n  \"kernels_of\": {},\n"
      "  \"duration_s\": {},\n  \"output_tokens\": {},\n{}"
      "  \"preemptions\": {},\n  \"kv_blocks\": {{\"total\": {}, \"peak\": {}}},\n"
      "  \"prefix_hit_tokens\": {},\n  \"host_hit_tokens\": {},\n  \"host_blocks\": {},\n  "
      "\"drafts\": {{\"tried\": {}, \"accepted\": {}}},\n"
      "  \"steady_state\": {},\n  \"models\": {},\n  \"tenants\": {},\n  \"replicas\": {},\n  "
      "\"load\": {},\n  "
      "\"quantiles_s\": {},\n"
      "  \"simulator\": {{\"events\": {}, \"wall_s\": {:.6f}, \"cpu_s\": {:.6f}, "
      "\"peak_rss_bytes\": {}}}\n}}\n",
      run.asked.empty() ? "{}" : run.asked, run.metrics.requests, result.steps,
      run.options.replicas.engine->name, run.chips,
      run.borrowed.empty() ? "null" : "\"" + json_escaped(run.borrowed) + "\"",
      exact_seconds(run.metrics.length), run.metrics.output_tokens,
      metrics_json(run.metrics, run, run.chips, "  "), result.preemptions, result.kv_blocks,
      result.peak_kv_blocks, result.hit_tokens, result.host_hit_tokens, host_json(result),
      result.drafts_tried, result.drafts_accepted, steady_state_json(run), models_json(run),
      tenants_json(run), replicas_json(run), load_json(result.load), quantiles_json(run),
      result.steps, run.wall_s, run.cpu_s, run.peak_rss_bytes);
}

void write_requests_csv(const ServingOutcome& run, OutputFile& out) {
  fmt::memory_buffer buffer;
  const auto append = [&buffer](std::string_view text) {
    buffer.append(text.data(), text.data() + text.size());
  };
  append("request,arrival_s,first_token_s,last_token_s,preemptions,longest_gap_s");
  for (std::size_t part = 0; part < kRequestParts; ++part) {
    fmt::format_to(std::back_inserter(buffer), ",{}_s", name_of(static_cast<RequestPart>(part)));
  }
  append(",input_tokens,output_tokens,tenant,replica\n");
  for (std::size_t i = 0; i < run.requests.requests.size(); ++i) {
    const RequestRecord& record = run.result.requests[RequestId(static_cast<std::uint32_t>(i))];
    const Request& request = run.requests.requests[i];
    fmt::format_to(std::back_inserter(buffer), "{},{},{},{},{},{}", i,
                   exact_seconds(record.arrival.since_start),
                   exact_seconds(record.first_token.since_start),
                   exact_seconds(record.last_token.since_start), record.preemptions,
                   exact_seconds(record.longest_gap));
    for (const Duration part : record.parts) {
      fmt::format_to(std::back_inserter(buffer), ",{}", exact_seconds(part));
    }
    fmt::format_to(std::back_inserter(buffer), ",{},{},{},{}\n", request.input_tokens,
                   record.tokens, csv_cell(run.requests.tenants[request.tenant.index()].name),
                   record.replica);
    if (buffer.size() < kFlushCsvAt) continue;
    out.write({buffer.data(), buffer.size()});
    buffer.clear();
  }
  out.write({buffer.data(), buffer.size()});
}

}  // namespace stepsim
