// The upper limits of keys (*_fields.cc). They are far above existing systems, and keep products of
// sizes in 64 bits.

#pragma once

#include "sim/base/field.h"

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

static_assert(kMostSequences * kMostTokens < 0x1p63, "tokens of a batch");
static_assert(kMostRanks * kMostSequences < 0x1p63, "sequences of all ranks");
static_assert(kMostParameters * kMostBytesOfAParameter < 0x1p63, "bytes of a model's state");

}  // namespace stepsim
