// The draws of serving; each kind has its own numbers (sim/base/random.h).

#pragma once

#include <cstdint>

namespace stepsim {

enum class RandomUse : std::uint64_t {
  kArrival,
  kInputLength,
  kOutputLength,
  kTableRow,
  kPrefix,
  kAcceptance,
};

}  // namespace stepsim
