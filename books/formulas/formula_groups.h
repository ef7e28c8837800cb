// The rows of the formula table. Each group has a file, named like its function. Only
// books/formulas includes this header.

#pragma once

#include <vector>

#include "books/formulas/formula.h"

namespace stepsim {

std::vector<Formula> roofline_formulas();         // A
std::vector<Formula> mesh_collective_formulas();  // B
std::vector<Formula> tree_collective_formulas();  // C
std::vector<Formula> transformer_formulas();      // D
std::vector<Formula> parallelism_formulas();      // E
std::vector<Formula> sharded_state_formulas();    // F
std::vector<Formula> pipeline_formulas();         // G
std::vector<Formula> activation_formulas();       // H
std::vector<Formula> inference_formulas();        // I
std::vector<Formula> hardware_formulas();         // J
std::vector<Formula> failing_run_formulas();      // K: failing_runs.cc

}  // namespace stepsim
