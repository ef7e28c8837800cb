// The list of all studies.

#pragma once

#include <vector>

#include "books/laboratory/study.h"

namespace stepsim {

std::vector<Study> studies();  // in order of their numbers

}  // namespace stepsim
