// `stepsim catalog experiments`: what was published about the experiments of the catalog, beside
// what they simulate.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stepsim {

struct CatalogExperimentsOptions {
  // Experiments on more chips are listed with their published figures, but not simulated. Not
  // given: all are simulated.
  std::optional<std::int64_t> most_chips;
  std::string json;  // file, or "-" for standard output; empty: none
};

// Prints each experiment as soon as it is done, the quickest first; those without figures are not
// simulated. True if every figure is within its range, or if nothing was simulated. All experiments
// of the catalog take some minutes. Throws SimulationInterrupted on Ctrl-C, and ConfigError if the
// JSON can't be written.
bool show_catalog_experiments(const CatalogExperimentsOptions& options);

}  // namespace stepsim
