// simulate_training_run() simulates a row of a table of measured runs as `stepsim run` would.

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "experiment/uncertainty.h"
#include "proto/load_experiment.h"
#include "schedules/plan/software_themes.h"

namespace stepsim {

struct RunPrediction {
  double step_time_s = 0;
  double tensor_bytes = 0;    // at the peak of memory
  double unused_bytes = 0;    // that the allocator keeps beside them, while there is room
  double fixed_bytes = 0;     // of the context and libraries
  double capacity_bytes = 0;  // of the chip

  double memory_bytes(MemoryFigure figure) const {
    if (figure == MemoryFigure::kAllocated) return tensor_bytes;
    // An allocator that finds no more memory gives back what it does not use, and tries again.
    const double room = std::max(0.0, capacity_bytes - fixed_bytes - tensor_bytes);
    const double reserved = tensor_bytes + std::min(unused_bytes, room);
    return reserved + (figure == MemoryFigure::kDevice ? fixed_bytes : 0);
  }
  double utilization = 0;  // of the chips' peak, by the model's FLOPs: MFU
  bool fits = false;
  Situation situation{};
};

// RunOutcome is a prediction, or the reason why there is none.
struct RunOutcome {
  std::optional<RunPrediction> prediction{};
  std::string problem{};
};

// Returns why a step that took so long is no measurement, but a slip of a unit or a digit: what it
// would be of the chips' peak; "" if it may be one.
std::string why_implausible_step(const RunPrediction& prediction, double step_time_s);

// Runs of more ops than this take much memory and hold `one_at_a_time` while they are simulated.
inline constexpr std::uint64_t kManyOps = 40'000'000;

// `goes_on` is asked now and then, and may be empty. Throws SimulationInterrupted if it returns
// false.
RunOutcome simulate_training_run(LoadedExperiment run, std::uint64_t most_ops,
                                 const std::function<bool()>& goes_on, std::mutex& one_at_a_time);

}  // namespace stepsim
