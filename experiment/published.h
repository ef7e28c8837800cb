// Publication holds what others measured on real chips and published about an experiment, so that
// it can be shown beside what is simulated.
//
//   published {
//     step_time: "19.926s"
//     source: "arXiv 2505.09343, table 4"
//   }
//
// A figure says how far the simulation is expected to be from it, as a range of simulated /
// published. Within 0.9 to 1.1 a simulation counts as right; a wider range has a reason. Nothing
// is fitted to these figures.

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
  kTokensPerSecond,           // tokens a second, all chips
  kFlopsPerChip,              // model FLOP/s of a chip
  kModelFlopsUtilization,     // MFU, 0..1, of the peak of the plan's compute type
  kHardwareFlopsUtilization,  // HFU, 0..1
  kPeakMemory,                // bytes, of the chip that needs most
};
inline constexpr std::size_t kPublishedMetrics = 6;

// "step_time": the field of the message.
std::string_view name_of(PublishedMetric metric);

// True if the figure depends on how the FLOPs of attention are counted.
bool counts_attention(PublishedMetric metric);

struct PublishedFigure {
  PublishedMetric metric = PublishedMetric::kStepTime;
  double value = 0;  // in SI base units
  // How the publication counts the FLOPs of attention: half the pairs of tokens, or all of them.
  AttentionFlops attention = AttentionFlops::kCausal;
  double low = 0.9;    // least simulated / published that is expected
  double high = 1.1;   // most
  std::string source;  // "arXiv 2407.21783, table 4"
  std::string plan;    // what it was measured with; empty: with the experiment's plan
  std::string why;     // reason for a range beyond 0.9 to 1.1
};

struct Publication {
  std::vector<PublishedFigure> figures;
  std::string none;  // why there are no figures; empty where there are, and where nobody said
};

// What is impossible: no source, a range without 0 < low < high, one beyond 0.9 to 1.1 without a
// reason, a utilization above 1. Fields are "published[0].low".
std::vector<Problem> check(const Publication& publication);

}  // namespace stepsim
