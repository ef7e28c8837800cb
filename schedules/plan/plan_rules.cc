#include "schedules/plan/plan_rules.h"

#include <algorithm>

namespace stepsim {
namespace {

// Returns "8 or 12": the multiples of `part` nearest to `whole`.
std::string nearest_multiples(std::int64_t part, std::int64_t whole) {
  const std::int64_t below = whole / part * part;
  const std::string above = std::to_string(below + part);
  return below == 0 ? above : std::to_string(below) + " or " + above;
}

}  // namespace

std::string nearest_divisors(std::int64_t part, std::int64_t whole) {
  std::int64_t below = 0;
  std::int64_t above = 0;
  for (std::int64_t small = 1; small * small <= whole; ++small) {
    if (whole % small != 0) continue;
    for (const std::int64_t divisor : {small, whole / small}) {
      if (divisor < part) below = std::max(below, divisor);
      if (divisor > part && (above == 0 || divisor < above)) above = divisor;
    }
  }
  if (below == 0 || above == 0) return std::to_string(std::max(below, above));
  return std::to_string(below) + " or " + std::to_string(above);
}

void Rules::require(bool holds, std::string field, std::string message) {
  if (!holds) problems_.push_back({std::move(field), std::move(message)});
}

void Rules::add(std::vector<Problem> problems) {
  for (Problem& problem : problems) problems_.push_back(std::move(problem));
}

void Rules::divides(const std::string& field, std::int64_t part, const std::string& what,
                    std::int64_t whole) {
  if (part < 1 || whole < 1 || whole % part == 0) return;
  problems_.push_back({field, "is " + std::to_string(part) + ", which does not divide the " + what +
                                  " (" + std::to_string(whole) +
                                  "); nearest: " + nearest_divisors(part, whole)});
}

void Rules::multiple_of(const std::string& field, std::int64_t whole, const std::string& what,
                        std::int64_t part) {
  if (part < 1 || whole < 1 || whole % part == 0) return;
  problems_.push_back({field, "is " + std::to_string(whole) + ", which is not a multiple of " +
                                  what + "; nearest: " + nearest_multiples(part, whole)});
}

}  // namespace stepsim
