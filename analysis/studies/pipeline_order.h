// A pipeline schedule by itself, for studies: ops take given times, messages a given time and
// no bandwidth.

#pragma once

#include <cstdint>
#include <string>

#include "analysis/studies/study.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/replay/replay.h"

namespace stepsim {

// A schedule with times in thousandths of a forward, which takes a millisecond.
struct Pipeline {
  ScheduleName name = ScheduleName::kOneForwardOneBackward;
  std::int64_t stages = 8;
  std::int64_t microbatches = 32;
  std::int64_t chunks = 1;
  std::int64_t forward = 1000;  // on a stage: a chunk takes its share
  std::int64_t input = 1000;
  std::int64_t weight = 1000;
  std::int64_t message = 0;
};

// Times in picoseconds. REQUIRES: its authors allow it (check() of schedule_request()).
PipelineReplay run(const Laboratory& laboratory, const Pipeline& pipeline);
// The same of an order that no schedule of the table has.
PipelineReplay run(const Laboratory& laboratory, const Pipeline& pipeline,
                   const PipelineSchedule& schedule);

ScheduleRequest schedule_request(const Pipeline& pipeline);

double bubble_fraction(const PipelineReplay& replayed);  // of the whole
double in_forwards(std::int64_t picoseconds);

// Difference to a value by hand, to rounding.
inline DifferenceRange by_hand(double value, double predicted) {
  return around(value / predicted - 1, 1e-6);
}

// "1f1b", "zb-h1", "v2" of interleaved ones with two chunks.
std::string short_name(const Pipeline& pipeline);

}  // namespace stepsim
