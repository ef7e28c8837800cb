// The text that `stepsim run --explain` prints below the table of the run, and the JSON that it
// writes under "explain":
//
//   {"step": PART, "parts": [PART...], "traffic": [{name, axis, text, predicted_s, simulated_s,
//    waiting_s, causes}...], "limits": [{formula, text, limit, actual, met}...],
//    "memory": [PART, in bytes...]}
//   PART = {name, formula, text, predicted_s, simulated_s, causes: [{text, amount_s}...]}

#pragma once

#include <string>

#include "experiment/explained/explain.h"

namespace stepsim {

std::string explain_report(const Explanation& explanation, bool color);

// Returns a JSON object without a newline at its end.
std::string explanation_json(const Explanation& explanation);

}  // namespace stepsim
