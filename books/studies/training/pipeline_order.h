// A pipeline schedule alone, for studies: ops and messages take given times, and messages use no
// bandwidth.

#pragma once

#include <cstdint>
#include <string>

#include "books/laboratory/study.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/replay/replay.h"

namespace stepsim {

// Pipeline is a schedule with times in thousandths of a forward, which takes a millisecond.
struct Pipeline {
  ScheduleName name = ScheduleName::kOneForwardOneBackward;
  std::int64_t stages = 8;
  std::int64_t microbatches = 32;
  std::int64_t chunks = 1;
  std::int64_t forward = 1000;  // on a stage; a chunk takes its share
  std::int64_t input = 1000;
  std::int64_t weight = 1000;
  std::int64_t message = 0;
};

// Returns times in picoseconds. REQUIRES: check() of schedule_request() finds no problem.
PipelineReplay run(const Laboratory& laboratory, const Pipeline& pipeline);
// The same for an order that is not in the table of schedules.
PipelineReplay run(const Laboratory& laboratory, const Pipeline& pipeline,
                   const PipelineSchedule& schedule);

ScheduleRequest schedule_request(const Pipeline& pipeline);

double bubble_fraction(const PipelineReplay& replayed);  // bubble over the whole
double in_forwards(std::int64_t picoseconds);

// Returns the difference to a value by hand, up to rounding.
inline DifferenceRange by_hand(double value, double predicted) {
  return around(value / predicted - 1, 1e-6);
}

// Returns "1f1b", "zb-h1", or "v2" for an interleaved schedule with two chunks.
std::string short_name(const Pipeline& pipeline);

}  // namespace stepsim
