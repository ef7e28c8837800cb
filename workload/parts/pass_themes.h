// What a pass of inference says of its cache. schedules/plan/keys/pass_fields.cc says what each key
// does; inference.h what layers make of it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/chips/kernel.h"

namespace stepsim {

// By what the tensor group divides the cache.
enum class CacheSplit : std::uint8_t {
  kHeads,     // some key-value heads of all requests
  kRequests,  // all heads of some requests
};
inline constexpr std::size_t kCacheSplits = 2;
std::string_view name_of(CacheSplit split);  // "requests"

struct CachePlan {
  std::optional<DataType> type{};  // unset: the activations' type
  CacheSplit split = CacheSplit::kHeads;
};

}  // namespace stepsim
