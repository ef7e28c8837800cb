#include "search/descent.h"

#include <algorithm>
#include <numeric>

namespace stepsim {
namespace {

constexpr std::uint64_t kMostDrawn = 20'000;
constexpr std::size_t kSample = 16;  // plans among which the first one is the best

// Returns a step through a space that meets each of its numbers once, near the golden section.
std::uint64_t golden_stride(std::uint64_t size) {
  constexpr double kGolden = 0.618033988749895;
  auto stride =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(kGolden * static_cast<double>(size)));
  while (std::gcd(stride, size) != 1) ++stride;
  return stride;
}

}  // namespace

Descent::Score Descent::score(const RatedPlan& plan) const {
  if (!plan.is_roomy(margin_)) return {static_cast<double>(plan.memory.value()), 0};
  FoundPlan bound;
  bound.step = plan.step;
  bound.peak = plan.memory;
  bound.chips = plan.chips;
  bound.cost = bench_.cost(plan.step, plan.chips);
  return {0, objective_value(bound, options_.objective)};
}

std::optional<RatedPlan> Descent::rated(std::uint64_t number) {
  if (const auto found = seen_.find(number); found != seen_.end()) return found->second;
  if (refused_.contains(number)) return std::nullopt;
  const SearchPlace& place = bench_.place();
  PlanOrReason made = place.space.draft(number, place.base.plan, place.base.model,
                                        static_cast<std::int64_t>(place.places.chips.size()));
  if (made.plan) made.plan = bench_.settled(std::move(*made.plan));
  if (!made.plan || bench_.problem_of(*made.plan)) {
    refused_[number] = true;
    return std::nullopt;
  }
  RatedPlan plan{.number = number,
                 .chips = made.plan->mesh.ranks(),
                 .microbatches = made.plan->microbatches(),
                 .memory = bench_.memory(*made.plan),
                 .usable = bench_.usable(*made.plan, options_)};
  if (plan.is_roomy(1)) plan.step = bench_.close(*made.plan);
  has_roomy_ = has_roomy_ || plan.is_roomy(margin_);
  return seen_[number] = plan;
}

std::optional<RatedPlan> Descent::drawn(std::uint64_t seed, const std::function<bool()>& goes_on) {
  const std::uint64_t size = bench_.place().space.size();
  const std::uint64_t stride = golden_stride(size);
  std::optional<RatedPlan> best;
  std::size_t plans = 0;
  constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;  // odd: seeds begin far from each other
  std::uint64_t number = (seed * kSpread) % size;        // at most 2^62, so sums have room
  for (std::uint64_t i = 0; i < std::min(kMostDrawn, size) && plans < kSample && goes_on(); ++i) {
    number = (number + stride) % size;
    const std::optional<RatedPlan> plan = rated(number);
    if (!plan) continue;
    ++plans;
    if (!best || score(*plan) < score(*best)) best = plan;
  }
  return best;
}

std::optional<RatedPlan> Descent::from(std::uint64_t seed, const std::function<bool()>& goes_on) {
  std::optional<RatedPlan> now = drawn(seed, goes_on);
  if (!now) return std::nullopt;
  const SearchSpace& space = bench_.place().space;
  const auto improve = [&](const std::vector<std::uint64_t>& numbers, bool takes_first) {
    const Score before = score(*now);
    for (const std::uint64_t number : numbers) {
      if (!goes_on()) return false;
      const std::optional<RatedPlan> plan = rated(number);
      if (!plan || score(*plan) >= score(*now)) continue;
      now = plan;
      if (takes_first) break;
    }
    return score(*now) < before;
  };
  while (improve(space.neighbours(now->number), false) ||
         improve(space.neighbours_by_two(now->number), true)) {
  }
  return now;
}

}  // namespace stepsim
