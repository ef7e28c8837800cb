// The upper limits of keys (*_fields.cc), far above existing systems.

#pragma once

#include "sim/fields/field.h"

namespace stepsim {

inline constexpr double kMostRanks = 1 << 20;  // of an axis
inline constexpr double kMostSequences = 1 << 24;
inline constexpr double kMostTokens = 1 << 27;
inline constexpr double kMostPrefetch = 1000;
inline constexpr double kMostRankOfAdapters = 65'536;
inline constexpr double kMostLayers = 10'000;  // of a stage
inline constexpr double kMostParameters = 1LL << 40;
inline constexpr double kMostBytesOfAParameter = 64;
inline constexpr double kMostBitsOfAValue = 32;
inline constexpr double kMostUnits = 1'000'000;
inline constexpr double kMostMetrics = 16;
inline constexpr double kMostLaunches = 1'000'000;

// These products, which plans take, fit in 64 bits.
inline constexpr double kEndOfWhole = 0x1p63;
static_assert(kMostSequences * kMostTokens < kEndOfWhole, "tokens of a step");
static_assert(kMostRanks * kMostRanks * kMostRanks < kEndOfWhole, "ranks of a stage");
static_assert(kMostParameters * kMostBytesOfAParameter < kEndOfWhole, "bytes of a bucket");

}  // namespace stepsim
