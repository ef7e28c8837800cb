// Publication holds what others measured on real chips and published about an experiment. Reports
// show it beside the simulated result.
//
//   published {
//     step_time: "19.926s"
//     source: "arXiv 2505.09343, table 4"
//   }
//
// A figure gives the range of simulated / published in which the simulation is expected. Within 0.9
// to 1.1 a simulation counts as right. A wider range needs a reason. Nothing is fitted to these
// figures.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "workload/model_counts.h"

namespace stepsim {

enum class PublishedMetric : std::uint8_t {
  kStepTime,                  // seconds
  kTokensPerSecond,           // tokens per second, all chips
  kFlopsPerChip,              // model FLOP/s per chip
  kModelFlopsUtilization,     // MFU, 0..1, relative to the peak of the plan's compute type
  kHardwareFlopsUtilization,  // HFU, 0..1
  kPeakMemory,                // bytes, on the chip that needs most
  // Means over the requests of a served experiment (experiment/passes/served_load.h).
  kTimePerToken,         // seconds
  kTimeToFirstToken,     // seconds
  kOutputTokensPerChip,  // a second
};
inline constexpr std::size_t kPublishedMetrics = 9;

// Returns the field of the message: "step_time".
std::string_view name_of(PublishedMetric metric);

// Returns whether the figure depends on how the FLOPs of attention are counted.
bool counts_attention(PublishedMetric metric);

// Returns whether serving requests gives the figure, and a step doesn't.
bool is_of_serving(PublishedMetric metric);

struct PublishedFigure {
  PublishedMetric metric = PublishedMetric::kStepTime;
  double value = 0;  // in SI base units
  // How the publication counts the FLOPs of attention: half of the pairs of tokens, or all of them.
  AttentionFlops attention = AttentionFlops::kCausal;
  double low = 0.9;    // least expected simulated / published
  double high = 1.1;   // largest expected simulated / published
  std::string source;  // "arXiv 2407.21783, table 4"
  std::string plan;    // plan of the measurement; empty: the experiment's plan
  std::string why;     // reason for a range beyond 0.9 to 1.1
};

struct Publication {
  std::vector<PublishedFigure> figures;
  std::string none;  // why there are no figures; empty: there are some, or no reason is given
};

// Returns what is not valid: no source, a range without 0 < low < high, a range beyond 0.9 to 1.1
// without a reason, a utilization above 1. Fields are "published[0].low".
std::vector<Problem> check(const Publication& publication);

}  // namespace stepsim
