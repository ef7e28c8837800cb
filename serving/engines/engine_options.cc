#include "serving/engines/engine_options.h"

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

}  // namespace stepsim
