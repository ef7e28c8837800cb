// ChipShare is the part of a chip that communication holds.

#pragma once

#include <cstdint>

#include "sim/chips/chip_spec.h"
#include "sim/collectives/library_choice.h"

namespace stepsim {

// Shares are in millionths, so that sums do not depend on their order.
struct ChipShare {
  std::int32_t compute = 0;
  std::int32_t memory = 0;
  friend bool operator==(const ChipShare&, const ChipShare&) = default;

  // Shares of several communication ops add up to at most this fraction.
  static constexpr double kMost = 0.9;
};

// Returns the share of a chip that a collective of this cost holds from its start to its end.
ChipShare taken_of(const ChipSpec& chip, const LibraryCost& cost);

}  // namespace stepsim
