// result_json() is the machine-readable result of `stepsim run`: one object, with these keys in
// this order.
//
//   name, step_time_s, steps, tokens_per_s, tokens_per_s_per_chip
//   model_flops_per_step, flops_convention ("causal" or "full"), peak_flops_per_s_per_chip
//   model_flops_utilization, hardware_flops_utilization   MFU and HFU, 0 to 1
//   fidelity, granularity
//   chips                   that hold a rank
//   idle_chips              names of the others; absent when there are none
//   published               [{metric, published, simulated, ratio, low, high, as_expected, source,
//                           ...}...]: published_report.h; absent where nothing was published
//   breakdown_s             {compute, exposed_communication {tp, cp, ...}, bubble, idle}
//   critical_path           [{label, duration_s}...], longest first
//   memory                  {peak_bytes, capacity_bytes, fits, fits_certainty, peak_rank,
//                           peak_time_s, by_category_bytes, peak_op}: of the rank that needs most,
//                           at its peak; by_stage: the same of each pipeline stage, [{stage, rank,
//                           peak_bytes, peak_time_s, peak_op}...]
//   energy                  {joules_per_step, joules_per_token, mean_watts_per_chip,
//                           peak_watts_per_chip, idle_watts_per_chip}: experiment/energy.h; null
//                           where the chip doesn't say its power
//   links                   [{name, utilization, bytes}...]: the ten busiest
//   bytes_by_axis           sent by all ranks in a step
//   experiment              what was run: proto/experiment_record.h; absent if it isn't known
//   explain                 {step, parts, traffic, limits, memory}: explain_report.h; absent
//                           without --explain
//   sensitivity, slopes_held, breakeven   what if the hardware were another: docs/what-if.md;
//                           absent unless asked
//   simulator               {ops, events, rate_updates, wall_s, cpu_s, peak_rss_bytes}
//
// Breakdown and critical path each add up to step_time_s; memory categories add up to peak_bytes.
// Simulated times are exact decimals with 12 fractional digits. Two equal runs give the same bytes
// except for `simulator`.

#pragma once

#include <string>
#include <vector>

#include "experiment/step/step_report.h"

namespace stepsim {

// The result ends in a newline. `what_if` are members to stand before `simulator`: JSON text, such
// as "sensitivity": [...].
std::string result_json(const StepReport& report, const std::vector<std::string>& what_if = {});

}  // namespace stepsim
