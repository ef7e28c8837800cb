// Loads tables of failures from files and from the catalog (proto/failures.proto).

#pragma once

#include <string>

#include "goodput/failure_table.h"

namespace stepsim {

// Takes a catalog name or a file (.textproto or .json). Throws ConfigError with all problems.
FailureTable load_failures(const std::string& name);

}  // namespace stepsim
