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

EngineOptions of_ranks(const EngineOptions& one, std::int64_t ranks) {
  if (ranks == 1) return one;
  EngineOptions all = one;
  Batching& batching = all.batching;
  const std::int64_t most = batching.long_prefill_threshold.value_or(batching.budget);
  if (batching.chunked_prefill) batching.long_prefill_threshold = std::min(most, batching.budget);
  batching.ranks *= ranks;
  batching.budget *= ranks;
  batching.sequences *= ranks;
  const auto multiply = [ranks](auto& own) {
    if constexpr (requires { own.multiply(ranks); }) own.multiply(ranks);
  };
  std::visit(multiply, all.own);
  return all;
}

}  // namespace stepsim
