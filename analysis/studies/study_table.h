// The list of all studies.

#pragma once

#include <vector>

#include "analysis/studies/study.h"

namespace stepsim {

std::vector<Study> studies();  // in order of their numbers

}  // namespace stepsim
