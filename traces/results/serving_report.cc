#include "traces/results/serving_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sim/base/quantity_text.h"
#include "sim/base/shown_text.h"
#include "traces/results/report_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kFlushCsvAt = std::size_t{1} << 16;
constexpr std::size_t kListedTenants = 20;

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

bool has_objective(const ServiceObjective& objective) {
  return objective.ttft || objective.tpot || objective.end_to_end;
}

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
