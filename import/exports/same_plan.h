// Compares what an exported file says with the experiment that it was made of: every field of the
// model and every key of the plan and the software, except those that act on nothing there (the
// dispatch of experts without experts), and with what may be written in several ways (layers of
// stages, kinds of layers) written in one.

#pragma once

#include <string>
#include <vector>

#include "experiment/experiment.h"

namespace stepsim {

struct DifferingField {
  std::string path;     // "plan.schedule"
  std::string wanted;   // "zbv_hand"; "unset" if it has no value
  std::string written;  // what the file says
};

// Returns the differences, in the order of the tables. REQUIRES: both are checked.
std::vector<DifferingField> differences(const Experiment& wanted, const Experiment& written);

}  // namespace stepsim
