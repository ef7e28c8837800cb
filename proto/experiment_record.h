// The record of a run: the experiment, complete in itself, as the member `experiment` of a result's
// JSON. It is an experiment file: `stepsim run result.json` reads it from there and runs it again.
//
//   {"name": ..., "model": {every field that is set}, "cluster": {...}, "plan": {every key in
//    force}, "variation": {...}, "simulation": {fidelity, granularity, ...}, "seed": 0,
//    "overrides": ["plan.tp=4"], "stepsim_version": "0.1.0"}
//
// It refers to no catalog and no other file, so it keeps its meaning when those change. `overrides`
// and `stepsim_version` are for information only: the fields already include the overrides. Kernels
// of serving are left out: no step runs them.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiment/simulate_experiment.h"

namespace stepsim {

// The parts of a record that are known once an experiment has been loaded.
struct ExperimentRecord {
  std::string fields;                  // a JSON object: name, model, cluster, plan, variation
  std::string lines;                   // the members of that object as lines of the record
  std::vector<std::string> overrides;  // "path=value", those of an earlier run first
};

// Returns the whole record. All lines except the first begin with two spaces, and there is no
// newline at the end.
std::string record_json(const ExperimentRecord& record, const ExperimentOptions& options,
                        std::string_view stepsim_version);

}  // namespace stepsim
