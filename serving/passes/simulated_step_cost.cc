#include "serving/passes/simulated_step_cost.h"

#include <algorithm>

namespace stepsim {
namespace {

std::int64_t part_of(std::int64_t whole, std::int64_t parts) {
  return (whole + parts - 1) / parts;
}

}  // namespace

Duration SimulatedStepCost::time_of(const Batch& batch) {
  pass_.groups.clear();
  std::int64_t decoded = batch.tokens;
  std::int64_t chunks = 0;
  for (const BatchEntry& entry : batch.entries) {
    if (entry.is_decode) continue;
    decoded -= entry.tokens;
    if (chunks++ % ranks_ != 0) continue;  // another rank's
    pass_.groups.push_back({.queries = entry.tokens, .cached = entry.computed});
  }
  if (batch.decodes > 0) {
    pass_.groups.push_back({.sequences = part_of(batch.decodes, ranks_),
                            .queries = part_of(decoded, batch.decodes),
                            .cached = batch.decode_context / batch.decodes,
                            .generates = true});
  }
  return times_.of(pass_);
}

}  // namespace stepsim
