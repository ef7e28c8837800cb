// The results of `stepsim serve` as a table for the terminal, as JSON, and as a CSV of requests.
//
// The JSON: requests, steps, ttft_s, tpot_s, inter_token_s, end_to_end_s (each {mean, p50, p90,
// p99}; null where nothing was counted), output_tokens_per_s, output_tokens_per_s_per_chip,
// goodput_requests_per_s (null without an objective), preemptions, kv_blocks {total, peak}, parts_s
// {queue, prefill, preempted, transfer, decode} (means that add up to that of end_to_end_s),
// steady_state (null if the run is too short to have one); then
// what docs/serving.md lists. Times are exact decimals.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "serving/serve.h"
#include "serving/serving_metrics.h"
#include "serving/steady_state.h"
#include "traces/files/output_file.h"
#include "traces/results/result_table.h"

namespace stepsim {

// ServedModelOutcome is one of several models.
struct ServedModelOutcome {
  std::string name;
  std::string_view engine{};
  std::int64_t chips = 1;  // of all its replicas
  std::string asked{};     // JSON object: the options that are this model's
  ServingMetrics metrics{};
};

// ServingOutcome is a run of serving and what belongs into its report.
struct ServingOutcome {
  const RequestList& requests;
  const ServingOptions& options;
  const ServiceObjective& objective;
  std::int64_t chips = 1;  // of all replicas
  std::string asked{};     // JSON object: what was asked for; empty: not known
  std::string
      borrowed{};  // the chip whose kernels were measured in place of this one's; empty: own
  ServingResult result{};
  ServingMetrics metrics{};
  std::optional<SteadyState> steady{};       // nullopt: too short
  std::vector<ServingMetrics> tenants{};     // by TenantId, if there are several
  std::vector<ServedModelOutcome> models{};  // if there are several
  double wall_s = 0;
  double cpu_s = 0;
  std::int64_t peak_rss_bytes = 0;
};

std::string serving_report(const ServingOutcome& run, bool color);

bool has_objective(const ServiceObjective& objective);

// Returns the sums over all replicas.
HostTierTotals host_totals(const ServingResult& result);

const ResultTable<ServingOutcome>& serving_results();

// Columns: request, arrival_s, first_token_s, last_token_s, preemptions, longest_gap_s, queue_s,
// prefill_s, preempted_s, transfer_s, decode_s, input_tokens, output_tokens, tenant, replica.
void write_requests_csv(const ServingOutcome& run, OutputFile& out);

}  // namespace stepsim
