#include "workload/parts/pass_themes.h"

#include <array>

namespace stepsim {

std::string_view name_of(CacheSplit split) {
  constexpr std::array<std::string_view, kCacheSplits> kNames = {"heads", "requests"};
  return kNames[static_cast<std::size_t>(split)];
}

}  // namespace stepsim
