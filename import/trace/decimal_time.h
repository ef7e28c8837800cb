// Reads and writes microseconds as traces write them, without rounding: "1712195495505583.037" has
// more digits than a double keeps.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepsim {

// Returns whole nanoseconds; digits below are rounded to the next one. nullopt: it is no decimal
// number ("-3.5", "1.7e9"), or out of range.
std::optional<std::int64_t> nanoseconds_in(std::string_view microseconds);
// Returns microseconds with three digits after the point: "-0.500".
std::string microseconds_text(std::int64_t nanoseconds);

}  // namespace stepsim
