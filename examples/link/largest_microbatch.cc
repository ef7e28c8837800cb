// The largest micro-batch that fits, and what a step takes with it.
#include <cstdio>
#include <string>

#include "experiment/simulate_experiment.h"
#include "proto/load_experiment.h"

int main() {
  for (const int microbatch : {8, 4, 2, 1}) {
    const stepsim::Experiment experiment =
        stepsim::load_experiment({.experiment = "llama3-8b-dgx-h100-8",
                                  .overrides = {"plan.microbatch=" + std::to_string(microbatch)}});
    const stepsim::SimulatedExperiment done = stepsim::simulate_experiment(experiment);
    const stepsim::SimulationResult& result = done.runs.front().result;
    const stepsim::MemoryPeak& peak = result.memory_peaks[result.peak_rank.index()];
    if (peak.bytes > experiment.cluster.chip.memory_capacity) continue;
    std::printf("micro-batch %d: %.3f s\n", microbatch, stepsim::to_seconds(result.step_time));
    return 0;
  }
  return 1;
}
