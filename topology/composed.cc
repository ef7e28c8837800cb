#include "topology/composed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>

#include "topology/kinds/spec_checks.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostChips = 1 << 20;

// Needs says what each block of a tier requires. It is known only if everything below is valid.
struct Needs {
  std::int64_t chips_per_block = 1;
  std::int64_t gateways = 1;  // gateways of all blocks
};

BlockSpec fitted(const TierSpec& tier, std::int64_t gateways) {
  BlockSpec fabric = *tier.fabric;
  fit(fabric, static_cast<std::uint32_t>(gateways));
  return fabric;
}

// REQUIRES: the tier's own numbers are in range.
void check_tier(const TierSpec& tier, const Needs& needs, SpecChecks& checks) {
  if (needs.chips_per_block * tier.count > kMostChips) {
    checks.add("count", fmt::format("makes {} chips, at most {} are possible",
                                    needs.chips_per_block * tier.count, kMostChips));
  }
  if (needs.chips_per_block % tier.chips_per_host != 0) {
    checks.add("chips_per_host",
               fmt::format("must divide the {} chips of a {}, is {}", needs.chips_per_block,
                           tier.name, tier.chips_per_host));
  }
}

// REQUIRES: check_tier() found no problem, and the fabric is valid.
void check_fit(const TierSpec& tier, const BlockSpec& fabric, const Needs& needs,
               SpecChecks& checks) {
  const auto places = static_cast<std::int64_t>(build(fabric).places.chips.size());
  if (places < needs.gateways) {
    checks.add("fabric", fmt::format("{} has {} places, but {} of {} with {} each need {}",
                                     name_of(fabric), places, tier.count, tier.name,
                                     needs.gateways / tier.count, needs.gateways));
  }
  const int rails = rails_of(fabric);
  if (needs.gateways / tier.count % rails != 0) {
    checks.add("fabric",
               fmt::format("{} has {} rails, which must divide the {} gateways of a {}",
                           name_of(fabric), rails, needs.gateways / tier.count, tier.name));
  }
}

void check_fields(const TierSpec& tier, SpecChecks& checks) {
  if (tier.name.empty()) checks.add("name", "must not be empty");
  if (!tier.host_bandwidth && tier.chips_per_host > 1) {
    checks.add("host_bandwidth", "must be given where chips share a host");
  }
  if (!tier.fabric && tier.count > 1) {
    checks.add("fabric", fmt::format("must be given to join {} of {}", tier.count, tier.name));
  }
}

// Changes `chips` from the chips of a block to those of the whole tier, or to nullopt after a
// problem.
std::vector<Problem> check_tier(const TierSpec& tier, std::optional<std::int64_t>& chips) {
  SpecChecks checks(tier_fields(), tier);
  check_fields(tier, checks);
  Needs needs;
  if (chips && checks.found_none()) {
    needs.chips_per_block = *chips;
    check_tier(tier, needs, checks);
    needs.gateways = *chips / tier.chips_per_host * tier.count;
  }
  const bool sizes_are_known = chips && checks.found_none();
  if (tier.fabric) {
    const BlockSpec fabric = fitted(tier, sizes_are_known ? needs.gateways : 1);
    const std::vector<Problem> problems = under("fabric", check(fabric));
    checks.add(problems);
    if (problems.empty() && sizes_are_known) check_fit(tier, fabric, needs, checks);
  }
  chips = chips && checks.found_none() ? std::optional(*chips * tier.count) : std::nullopt;
  return checks.problems();
}

Joint joint_of(const TierSpec& tier, bool is_first) {
  const bool relays = tier.fabric && tier.chips_per_host == 1 && tier.cross_rail == CrossRail::kPxn;
  return {.block = tier.name,
          .blocks = static_cast<std::uint32_t>(tier.count),
          .chips_per_host = static_cast<std::uint32_t>(tier.chips_per_host),
          .host_bandwidth = tier.host_bandwidth.value_or(Bandwidth(0)),
          .host_latency = tier.host_latency,
          .rails = relays ? static_cast<std::uint32_t>(rails_of(*tier.fabric)) : 1,
          .planes = static_cast<std::uint32_t>(tier.planes),
          .fabric_prefix = is_first ? "" : tier.name + "_network."};
}

}  // namespace

std::vector<Problem> check(const ComposedSpec& spec) {
  SpecChecks checks;
  checks.add(under("domain", check(spec.domain)));
  std::optional<std::int64_t> chips;
  if (checks.found_none()) {
    chips = static_cast<std::int64_t>(build(spec.domain).places.chips.size());
  }
  for (std::size_t i = 0; i < spec.tiers.size(); ++i) {
    const std::string field = fmt::format("tiers[{}]", i);
    checks.add(under(field, check_tier(spec.tiers[i], chips)));
    const auto same_name = [&](const TierSpec& other) { return other.name == spec.tiers[i].name; };
    if (std::any_of(spec.tiers.begin(), spec.tiers.begin() + static_cast<std::ptrdiff_t>(i),
                    same_name)) {
      checks.add(field + ".name", "is that of another tier: " + spec.tiers[i].name);
    }
  }
  return checks.problems();
}

BuiltTopology build(const ComposedSpec& spec) {
  assert(check(spec).empty());
  BuiltTopology built = build(spec.domain);
  for (std::size_t i = 0; i < spec.tiers.size(); ++i) {
    const TierSpec& tier = spec.tiers[i];
    const auto chips = static_cast<std::int64_t>(built.places.chips.size());
    std::optional<BuiltTopology> fabric;
    if (tier.fabric) fabric = build(fitted(tier, chips / tier.chips_per_host * tier.count));
    built = join(std::move(built), joint_of(tier, i == 0), std::move(fabric));
  }
  return built;
}

}  // namespace stepsim
