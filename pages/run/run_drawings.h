// run_drawings() is what a page of a run shows and the run's JSON does not say: the pipeline over
// time, memory over time, the load of links, the kernels. It is one JSON object, of bounded size:
//
//   chip, parameters, active_parameters (that one token uses)
//   stages    rank_times.h        where the step goes, by pipeline stage
//   ranks     rank_times.h        the same by rank
//   gantt     gantt.h             one rank a stage over time
//   memory    memory_curves.h     memory over time by category
//   watts     watts_curve.h       what chips draw over time
//   links     link_loads.h        kinds of links over time
//   cluster   cluster_drawing.h   nodes and their load
//   kernels   kernel_roofline.h   all kernels, and the roofs of the chip

#pragma once

#include "experiment/finished_run.h"
#include "proto/messages/json_value.h"

namespace stepsim {

// REQUIRES: a rank of each program and all links were recorded, with shared timelines.
Json run_drawings(const FinishedRun& run);

// Returns the recorded ranks that drawings show, one a pipeline stage; of many stages an even
// choice of at most `most` with the first and the last: numbers in SimulationResult::recorded.
std::vector<std::size_t> drawn_ranks(const FinishedRun& run, std::size_t most);

// DrawnTime counts time in whole ticks, of which a run has at most two million.
class DrawnTime {
 public:
  explicit DrawnTime(Duration whole);
  std::int64_t ticks(Time time) const { return time.since_start.count() / tick_ps_; }
  std::int64_t ticks(Duration duration) const { return duration.count() / tick_ps_; }
  double tick_s() const { return static_cast<double>(tick_ps_) / kPicosecondsPerSecond; }

 private:
  std::int64_t tick_ps_ = 1;
};

// Returns the number with five significant digits, so that it prints as few.
double rounded(double number);

}  // namespace stepsim
