// The record of a run: what was asked, complete in itself, as the member `experiment` of a result's
// JSON. It is an experiment file: `stepsim run result.json` reads it from there and runs it again.
//
//   {"name": ..., "model": {every field that is set}, "cluster": {...}, "plan": {every key in
//    force}, "variation": {...}, "simulation": {fidelity, granularity, ...}, "seed": 0,
//    "overrides": ["plan.tp=4"], "stepsim_version": "0.1.0"}
//
// Nothing in it refers to a catalog or to another file, so it means the same when those have
// changed. `overrides` and `stepsim_version` only tell; what the overrides changed is in the
// fields.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiment/simulate_experiment.h"

namespace stepsim {

// The parts of a record that are known once an experiment has been loaded.
struct ExperimentRecord {
  std::string fields;                  // a JSON object: name, model, cluster, plan, variation
  std::vector<std::string> overrides;  // "path=value", those of an earlier run first
};

// The whole record. Its lines but the first begin with two spaces, and it has no newline at its
// end.
std::string record_json(const ExperimentRecord& record, const ExperimentOptions& options,
                        std::string_view stepsim_version);

}  // namespace stepsim
