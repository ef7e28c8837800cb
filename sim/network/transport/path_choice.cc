#include "sim/network/transport/path_choice.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "sim/base/random.h"

namespace stepsim {

PathChoice::PathChoice(const TransportSpec& spec, std::uint64_t seed, std::uint32_t paths)
    : policy_(spec.paths_by),
      paths_(spec.paths_by == PathPolicy::kSprayPermute ? std::max<std::uint32_t>(paths, 1)
                                                        : std::bit_ceil(spec.paths)),
      skip_per_mark_(spec.skip_per_mark),
      skip_per_trim_(spec.skip_per_trim),
      most_skips_(spec.most_skips),
      reuses_(spec.reuses_good_paths),
      seed_(mixed_bits(seed)) {
  if (policy_ == PathPolicy::kSprayPermute) {
    order_.resize(paths_);
    std::iota(order_.begin(), order_.end(), 0);
    position_ = paths_;
  } else if (policy_ == PathPolicy::kSprayAdaptive) {
    skips_.assign(paths_, 0);
    round_xor_ = static_cast<std::uint32_t>(mixed_bits(seed_ + drawn_++));
  }
}

void PathChoice::reorder() {
  for (std::uint32_t left = paths_; left > 1; --left) {
    const auto other = static_cast<std::uint32_t>(mixed_bits(seed_ + drawn_++) % left);
    std::swap(order_[other], order_[left - 1]);
  }
  position_ = 0;
}

std::uint32_t PathChoice::next() {
  switch (policy_) {
    case PathPolicy::kGivenRoute:
    case PathPolicy::kEcmpHash:
      return 0;
    case PathPolicy::kSprayRandom:
      return static_cast<std::uint32_t>(mixed_bits(seed_ + drawn_++));
    case PathPolicy::kSprayPermute:
      if (position_ == paths_) reorder();
      return order_[position_++];
    case PathPolicy::kSprayAdaptive:
      break;
  }
  if (reuses_ && !good_.empty()) {
    const std::uint32_t entropy = good_.front();
    good_.pop_front();
    return entropy;
  }
  return next_adaptive();
}

// Entropies to be skipped are passed over; the first of them has one turn less to wait.
std::uint32_t PathChoice::next_adaptive() {
  const std::uint32_t mask = paths_ - 1;
  const auto step = [&] {
    if (++position_ < paths_) return;
    position_ = 0;
    round_xor_ = static_cast<std::uint32_t>(mixed_bits(seed_ + drawn_++));
  };
  std::uint32_t entropy = (position_ ^ round_xor_) & mask;
  for (std::uint32_t passed = 0; skips_[entropy] > 0 && passed <= paths_; ++passed) {
    if (passed == 0 || !reuses_) --skips_[entropy];
    step();
    entropy = (position_ ^ round_xor_) & mask;
  }
  step();
  return entropy;
}

std::uint32_t PathChoice::path_of(std::uint32_t entropy) const {
  switch (policy_) {
    case PathPolicy::kGivenRoute:
      return 0;
    case PathPolicy::kSprayRandom:
    case PathPolicy::kSprayPermute:
      return entropy;
    case PathPolicy::kEcmpHash:
    case PathPolicy::kSprayAdaptive:
      break;
  }
  return static_cast<std::uint32_t>(mixed_bits(seed_ ^ (std::uint64_t{entropy} << 32U | 0x5eedU)));
}

std::uint32_t PathChoice::answer_path() {
  if (policy_ == PathPolicy::kGivenRoute) return 0;
  const std::uint64_t which = policy_ == PathPolicy::kEcmpHash ? 0 : ++drawn_;
  return static_cast<std::uint32_t>(mixed_bits(~seed_ + which));
}

void PathChoice::on_answer(const Packet& answer) {
  if (policy_ != PathPolicy::kSprayAdaptive) return;
  if (answer.kind != PacketKind::kAck && answer.kind != PacketKind::kNack) return;
  const bool is_bad = answer.kind == PacketKind::kNack && !answer.at_last_hop;
  if (!is_bad && !answer.marked) {
    if (reuses_) good_.push_back(answer.entropy);
    return;
  }
  std::uint8_t& skips = skips_[answer.entropy & (paths_ - 1)];
  const std::uint32_t more = skips + (is_bad ? skip_per_trim_ : skip_per_mark_);
  skips = static_cast<std::uint8_t>(std::min(more, most_skips_));
}

}  // namespace stepsim
