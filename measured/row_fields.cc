#include "measured/row_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/run/simulate.h"

namespace stepsim {

bool is_ended(const PredictOptions& options) {
  return options.is_ended && options.is_ended();
}

void report(const PredictOptions& options, std::size_t done, std::size_t records) {
  if (options.progress && !options.progress(done, records)) {
    throw SimulationInterrupted("interrupted after " + std::to_string(done) + " records");
  }
}

}  // namespace stepsim
