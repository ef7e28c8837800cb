#include "serving/passes/simulated_step_cost.h"

#include <algorithm>

namespace stepsim {
namespace {

std::int64_t part_of(std::int64_t whole, std::int64_t parts) {
  return (whole + parts - 1) / parts;
}

}  // namespace

// Each chunk goes to the rank with the fewest tokens so far. The fullest one holds up all others.
void SimulatedStepCost::add_chunks_of_fullest(const Batch& batch) {
  loads_.assign(static_cast<std::size_t>(ranks_), 0);
  rank_of_chunk_.clear();
  for (const BatchEntry& entry : batch.entries) {
    if (entry.is_decode) continue;
    const auto rank = std::ranges::min_element(loads_) - loads_.begin();
    loads_[static_cast<std::size_t>(rank)] += entry.tokens + entry.padding;
    rank_of_chunk_.push_back(rank);
  }
  const auto fullest = std::ranges::max_element(loads_) - loads_.begin();
  auto rank = rank_of_chunk_.begin();
  for (const BatchEntry& entry : batch.entries) {
    if (entry.is_decode || *rank++ != fullest) continue;
    pass_.groups.push_back({.queries = entry.tokens + entry.padding, .cached = entry.computed});
  }
}

Duration SimulatedStepCost::time_of(const Batch& batch) {
  pass_.groups.clear();
  add_chunks_of_fullest(batch);
  if (batch.decodes > 0) {
    std::int64_t decoded = batch.tokens - batch.empty_slots;
    for (const BatchEntry& entry : batch.entries) {
      decoded -= entry.is_decode ? 0 : entry.tokens + entry.padding;
    }
    // An empty slot is computed like the others.
    pass_.groups.push_back({.sequences = part_of(batch.decodes + batch.empty_slots, ranks_),
                            .queries = part_of(decoded, batch.decodes),
                            .cached = batch.decode_context / batch.decodes,
                            .generates = true});
  }
  return times_.of(pass_);
}

}  // namespace stepsim
