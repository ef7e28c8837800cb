// part() cuts data in the way that all collectives do (algorithm.h).

#pragma once

#include <cstdint>

namespace stepsim {

// Returns the size of part i of `whole` elements cut into `parts`. The part is
// [i whole / parts, (i + 1) whole / parts).
constexpr std::int64_t part(std::int64_t whole, std::int64_t i, std::int64_t parts) {
  return (i + 1) * whole / parts - i * whole / parts;
}

}  // namespace stepsim
