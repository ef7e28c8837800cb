// Serves the rows of a table of served runs as with `stepsim serve`. Rows of one plan share the
// passes that were simulated.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measured/accuracy.h"
#include "measured/run_rows.h"
#include "measured/simulate_served_run.h"

namespace stepsim {

// What a row's requests met, or why it can't be served.
struct ServedOutcome {
  std::string problem{};
  std::string chip{};
  double chips = 1;  // that tokens a second and chip count
  std::optional<ServedFigures> figures{};
};

// Returns an outcome for each row. `done` is called with how many rows more are done, one call at a
// time. Throws SimulationInterrupted; ConfigError where serving_plan or serving_engine of the
// options are wrong.
std::vector<ServedOutcome> serve_rows(const std::vector<const RunRow*>& rows,
                                      const PredictOptions& options,
                                      const std::function<void(std::size_t)>& done);

}  // namespace stepsim
