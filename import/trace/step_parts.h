// StepParts divides a step of one rank into kinds of work, without a remainder: at each instant one
// kind counts. Work on the chip goes before communication, communication before waiting; of several
// slices of a class the one that started last counts (an inner one, where slices are nested). Where
// no slice is, the chip is idle. The parts add up to the step to the nanosecond.

#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "import/trace/device_trace.h"

namespace stepsim {

struct StepParts {
  std::array<std::int64_t, kSliceKinds> nanoseconds{};
  std::array<std::size_t, kSliceKinds>
      counts{};  // slices that start in the step; intervals of idle
};

// tells_waits: time before TraceSlice::moving is waiting; else it belongs to the collective.
StepParts parts_of(const RankTrace& rank, const TraceStep& step, bool tells_waits);

// Returns the slices that start in the step, in order. A wait of stepsim's own, which stands before
// its collective, is none.
std::vector<const TraceSlice*> slices_in(const RankTrace& rank, const TraceStep& step);

}  // namespace stepsim
