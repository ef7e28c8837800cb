#include "sim/run/ops/chip_share.h"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

std::int32_t millionths(double share) {
  return static_cast<std::int32_t>(std::llround(1e6 * std::clamp(share, 0.0, ChipShare::kMost)));
}

}  // namespace

ChipShare taken_of(const ChipSpec& chip, const LibraryCost& cost) {
  const CommunicationUnits& of = chip.communication;
  if (of.fixed) {
    return {.compute = millionths(of.fixed->compute_share),
            .memory = millionths(of.fixed->memory_share)};
  }
  if (of.units == 0) return {};
  return {.compute = millionths(static_cast<double>(cost.channels) / static_cast<double>(of.units)),
          .memory = millionths(cost.memory.value() / chip.memory_bandwidth.value())};
}

}  // namespace stepsim
