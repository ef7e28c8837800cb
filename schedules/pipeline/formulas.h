// The published bubble of each schedule, and under which conditions it is what a replay gives.
//
//   const auto formula = bubble_formula(request);
//   formula->text            // "(P - 1)(f + b - w)"
//   formula->broken          // empty: replay() gives exactly this; else what is in the way
//
// f, b, w are the times of forward, input gradient and weight gradient of a chunk, L that of a
// send, B = b + w. Values are in the unit of the request's costs, exact fractions. Conditions come
// from the papers where they state them, else from replays (docs of each schedule). A formula whose
// conditions fail may still come out right; or below 0 (ZB with a long w), which is said. No
// formula knows of stages that differ: it is then worked out with the longest time of each kind.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/pipeline/make_schedule.h"

namespace stepsim {

// Which bubble a paper quotes: idle time of the whole from the first start of all to the last end
// of all, or of one rank between its own first start and last end.
enum class BubbleMeasure : std::uint8_t { kMakespan, kSpan };

struct BubbleFormula {
  std::string text{};
  std::string source{};
  BubbleMeasure measure = BubbleMeasure::kMakespan;
  std::int64_t numerator = 0;  // value = numerator / denominator
  std::int64_t denominator = 1;
  std::vector<std::string> broken{};  // conditions that this request breaks, with its values

  bool holds() const { return broken.empty(); }
};

// Nothing for a schedule without a published formula. REQUIRES: check(request) is empty.
std::optional<BubbleFormula> bubble_formula(const ScheduleRequest& request);

}  // namespace stepsim
