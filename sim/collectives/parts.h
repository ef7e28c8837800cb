// part() cuts data in the way that all collectives do (algorithm.h).

#pragma once

#include <cstdint>

namespace stepsim {

// Returns the size of part i of `whole` elements cut into `parts`, at most 2^31. The part is
// [i whole / parts, (i + 1) whole / parts). The products are of remainders, so none overflows.
constexpr std::int64_t part(std::int64_t whole, std::int64_t i, std::int64_t parts) {
  const std::int64_t rest = whole % parts;
  return whole / parts + (i + 1) * rest / parts - i * rest / parts;
}

// Returns share * whole / parts, rounded to the nearest. share * parts must fit in 63 bits.
constexpr std::int64_t rounded_share(std::int64_t whole, std::int64_t share, std::int64_t parts) {
  return share * (whole / parts) + (share * (whole % parts) + parts / 2) / parts;
}

}  // namespace stepsim
