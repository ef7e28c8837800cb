// `stepsim catalog experiments`: the published figures of the catalog's experiments beside the
// simulated ones.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/subcommand.h"

namespace stepsim {

struct CatalogExperimentsOptions {
  // Experiments on more chips are listed with their published figures but not simulated. Unset: all
  // are simulated.
  std::optional<std::int64_t> most_chips;
  std::string json;  // file, "-" for standard output, or empty for none
};

// Prints each experiment as soon as it is done, the quickest first. Experiments without figures are
// not simulated. Returns kDone if every figure is within its range or nothing was simulated. All
// experiments of the catalog take a few minutes.
ExitStatus show_catalog_experiments(const CatalogExperimentsOptions& options);

// What it writes.
const AnyResultTable& catalog_results();

}  // namespace stepsim
