#include "sim/collectives/algorithms/halving_doubling.h"

#include <bit>
#include <cassert>

namespace stepsim {

HalvingDoubling::HalvingDoubling(const CollectiveTask& task,
                                 const std::vector<std::uint32_t>& order, bool whole)
    : FlatAlgorithm(task, order),
      whole_(whole),
      power_(std::bit_floor(members())),
      extra_(members() - power_),
      levels_(rounds_of_doubling(power_)) {
  assert(extra_ == 0 || task.op == CollectiveOp::kAllReduce);
}

std::uint32_t HalvingDoubling::rounds() const {
  const bool both = task().op == CollectiveOp::kAllReduce && !whole_;
  return levels_ * (both ? 2 : 1) + (extra_ > 0 ? 2 : 0);
}

HalvingDoubling::Step HalvingDoubling::step(std::uint32_t round) const {
  if (extra_ > 0) {
    if (round == 0) return {Phase::kFold, 0};
    if (round + 1 == rounds()) return {Phase::kUnfold, 0};
    --round;
  }
  if (whole_) return {Phase::kWhole, round};
  if (task().op == CollectiveOp::kAllGather) return {Phase::kDouble, round};
  if (round < levels_) return {Phase::kHalve, round};
  return {Phase::kDouble, round - levels_};
}

// Among the first 2 (n - p) positions, the even ones take part, for themselves and their neighbour.
std::optional<HalvingDoubling::Sent> HalvingDoubling::sent(std::uint32_t round,
                                                           std::uint32_t member) const {
  const std::uint32_t position = position_of(member);
  const auto [phase, number] = step(round);
  const bool folded = position < 2 * extra_;
  if (phase == Phase::kFold || phase == Phase::kUnfold) {
    const bool from_odd = phase == Phase::kFold;
    if (!folded || (position % 2 == 1) != from_odd) return std::nullopt;
    return Sent{.to = member_at(position ^ 1U), .begin = 0, .count = power_, .reduce = from_odd};
  }
  if (folded && position % 2 == 1) return std::nullopt;
  const std::uint32_t self = folded ? position / 2 : position - extra_;
  const std::uint32_t distance = phase == Phase::kHalve ? power_ >> (number + 1) : 1U << number;
  const std::uint32_t partner = self ^ distance;
  const std::uint32_t to = member_at(partner < extra_ ? 2 * partner : partner + extra_);
  if (phase == Phase::kWhole) return Sent{.to = to, .begin = 0, .count = power_, .reduce = true};
  const bool halves = phase == Phase::kHalve;
  return Sent{.to = to,
              .begin = (halves ? partner : self) & ~(distance - 1),
              .count = distance,
              .reduce = halves};
}

std::optional<CollectiveMessage> HalvingDoubling::message(std::uint32_t, std::uint32_t round,
                                                          std::uint32_t member) const {
  const auto what = sent(round, member);
  if (!what) return std::nullopt;
  return CollectiveMessage{.to = what->to,
                           .bytes = bytes_of_parts(what->begin, what->count, power_),
                           .reduce = what->reduce};
}

std::uint32_t HalvingDoubling::receives(std::uint32_t, std::uint32_t round,
                                        std::uint32_t member) const {
  const std::uint32_t position = position_of(member);
  const Phase phase = step(round).phase;
  const bool folded = position < 2 * extra_;
  const bool odd = position % 2 == 1;
  if (phase == Phase::kFold) return folded && !odd ? 1 : 0;
  if (phase == Phase::kUnfold) return folded && odd ? 1 : 0;
  return folded && odd ? 0 : 1;
}

void HalvingDoubling::blocks(std::uint32_t, std::uint32_t round, std::uint32_t member,
                             std::vector<std::uint32_t>& out) const {
  const auto what = sent(round, member);
  append_parts(what->begin, what->count, power_, out);
}

}  // namespace stepsim
