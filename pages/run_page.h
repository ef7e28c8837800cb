// run_page() is the report of a training step: what was asked, how sure the answer is, where the
// step goes, the pipeline, memory, links, kernels, what would change it, and the formulas beside
// it.
//
// Its numbers are those of the result's JSON (traces/results/result_json.h), and its drawings what
// only the run itself knows (pages/run/run_drawings.h). What the result doesn't have (sensitivity,
// explain) has no section.

#pragma once

#include <string>

#include "proto/messages/json_value.h"

namespace stepsim {

// Throws ConfigError with the members of `result` that aren't those of a run.
std::string run_page(const Json& result, const Json& drawings);

}  // namespace stepsim
