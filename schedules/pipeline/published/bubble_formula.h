// bubble_formula() returns the published bubble of a schedule for a request, with the conditions
// under which a replay gives exactly that value.
//
//   const auto formula = bubble_formula(request);
//   formula->text            // "(P - 1)(f + b - w)"
//   formula->broken          // empty: replay() gives exactly this; else what is in the way
//
// f, b, w are the times of forward, input gradient and weight gradient of a chunk. L is the time of
// a send, and B = b + w. Values are in the unit of the request's costs. No formula covers stages
// that differ: it is then evaluated with the longest time of each kind, and does not hold.

#pragma once

#include <optional>

#include "schedules/pipeline/bubble.h"
#include "schedules/pipeline/published/make_schedule.h"

namespace stepsim {

// Returns nullopt for a schedule without a published formula. REQUIRES: check(request) is empty.
std::optional<BubbleFormula> bubble_formula(const ScheduleRequest& request);

}  // namespace stepsim
