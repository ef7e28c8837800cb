// compare_with_published() puts the published figures of an experiment beside the simulated ones,
// in the units and the FLOPs convention of the publication.
//
//   compare_with_published(loaded.publication, loaded.experiment, result, metrics)

#pragma once

#include <vector>

#include "experiment/experiment.h"
#include "experiment/published.h"
#include "experiment/step_metrics.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

struct PublishedComparison {
  PublishedFigure figure;
  double simulated = 0;  // in the unit of figure.value

  double ratio() const { return simulated / figure.value; }
  bool as_expected() const;  // whether the ratio is in the range of the figure
};

// Returns the comparisons of a step in the order of the file; empty if nothing was published about
// the experiment's steps. REQUIRES: result.step_time > 0, metrics = measure(experiment, result, any
// convention).
std::vector<PublishedComparison> compare_with_published(const Publication& publication,
                                                        const Experiment& experiment,
                                                        const SimulationResult& result,
                                                        const StepMetrics& metrics);

}  // namespace stepsim
