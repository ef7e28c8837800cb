// The MLP that the source documents use in calculations: [B, D] x [D, F] and back, in bf16.

#pragma once

namespace stepsim {

inline constexpr double kD = 8192;
inline constexpr double kF = 32768;

}  // namespace stepsim
