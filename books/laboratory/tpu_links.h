// Links of the inter-chip interconnect of TPU v4 and v5e, as the source documents give them.

#pragma once

namespace stepsim {

inline constexpr double kIciLink = 45e9;          // B/s, one way
inline constexpr double kIciAxis = 2 * kIciLink;  // B/s, both directions of an axis

}  // namespace stepsim
