#include "serving/engines/engine_options.h"

#include <algorithm>
#include <array>

namespace stepsim {

std::string_view name_of(QueuePolicy policy) {
  constexpr std::array<std::string_view, kQueuePolicies> kNames = {"arrival", "priority",
                                                                   "longest-prefix"};
  return kNames[static_cast<std::size_t>(policy)];
}

std::string_view name_of(Drafter drafter) {
  constexpr std::array<std::string_view, kDrafters> kNames = {"n-gram", "draft-model", "mtp"};
  return kNames[static_cast<std::size_t>(drafter)];
}

std::string_view name_of(CapacityPolicy policy) {
  constexpr std::array<std::string_view, kCapacityPolicies> kNames = {"no-evict",
                                                                      "max-utilisation"};
  return kNames[static_cast<std::size_t>(policy)];
}

EngineOptions of_ranks(const EngineOptions& one, std::int64_t ranks) {
  if (ranks == 1) return one;
  EngineOptions all = one;
  for (std::int64_t* const each : {&all.budget, &all.sequences, &all.chunk, &all.max_prefill}) {
    *each *= ranks;
  }
  const std::int64_t most = one.long_prefill_threshold.value_or(one.budget);
  if (one.chunked_prefill) all.long_prefill_threshold = std::min(most, one.budget);
  return all;
}

}  // namespace stepsim
