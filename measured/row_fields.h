// Functions for fields that all kinds of measured tables share.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measured/accuracy.h"

namespace stepsim {

// Returns whether the caller wants what is done, and no more; other records are skipped as
// kInterrupted.
bool is_ended(const PredictOptions& options);
inline constexpr std::string_view kInterrupted = "interrupted before it was done";

// Throws SimulationInterrupted if the caller wants to stop.
void report(const PredictOptions& options, std::size_t done, std::size_t records);

}  // namespace stepsim
