// How many rows (copies of tokens) the experts of one chip get, by laws of routing that benchmarks
// of serving use. The result is what time_of_experts() needs (sim/chips/expert_layer.h).
//
//   const ExpertLoad load = balanced_load({.tokens = 64, .experts = 256, .top_k = 8, .members =
//   8});
//
//   balanced   token i takes the experts i + j x stride, stride = ceil(experts / top_k), modulo
//              experts; with fewer tokens than the stride they spread out: floor(i x stride /
//              tokens)
//              + j x stride. All chips but the last few have the same; this is the first
//   power law  an expert's share of the copies is drawn from a density x^-alpha between 1 and 0.8 x
//              tokens (0.01 and 2 if there are not more copies than experts), rounded; no expert
//              gets more rows than there are tokens. This is the chip with the most rows, as it
//              holds up the others; the mean of `draws` draws
//
// Both are those of ai-dynamo/aiconfigurator@095f58a5 (collector/helper.py: balanced_logits,
// _generate_power_law_distribution), but for how rounding is evened out. Draws are the same in
// every run and on every machine.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/chips/expert_layer.h"

namespace stepsim {

struct ExpertShare {
  std::int64_t tokens = 0;   // of all members together
  std::int64_t experts = 1;  // a multiple of members
  std::int64_t top_k = 1;    // at most experts
  std::int64_t members = 1;  // chips that the experts are spread over, equally many on each
};

// Returns the rows of each of the first member's experts. O(experts x top_k).
std::vector<std::int64_t> balanced_rows(const ExpertShare& share);
ExpertLoad balanced_load(const ExpertShare& share);

// REQUIRES: alpha > 0, alpha != 1; draws >= 1. O(draws x experts log experts).
ExpertLoad power_law_load(const ExpertShare& share, double alpha, int draws = 8);

}  // namespace stepsim
