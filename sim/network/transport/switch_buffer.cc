#include "sim/network/transport/switch_buffer.h"

#include <algorithm>
#include <cmath>

namespace stepsim {

double marking_probability(const SwitchSpec& spec, std::int64_t queue) {
  if (!spec.ecn_low || queue <= spec.ecn_low->value()) return 0;
  const std::int64_t low = spec.ecn_low->value();
  const std::int64_t high = spec.ecn_high.value_or(*spec.ecn_low).value();
  if (queue > high) return 1;
  return spec.ecn_most * static_cast<double>(queue - low) / static_cast<double>(high - low);
}

SwitchBuffer::SwitchBuffer(const SwitchSpec& spec, std::uint32_t inputs)
    : pfc_(spec.pfc),
      size_(spec.shared_buffer.value_or(Bytes(0)).value()),
      pool_(size_ - inputs * (spec.pfc_headroom.value_or(Bytes(0)) + spec.pfc_reserve).value()),
      reserve_(spec.pfc_reserve.value()),
      headroom_(spec.pfc_headroom.value_or(Bytes(0)).value()),
      xoff_(spec.pfc_xoff.value_or(Bytes(0)).value()),
      xon_(spec.pfc_xon.value_or(Bytes(0)).value()),
      resume_offset_(spec.pfc_resume_offset.value()),
      alpha_(spec.pfc_alpha),
      inputs_(inputs) {}

std::int64_t SwitchBuffer::threshold() const {
  return static_cast<std::int64_t>(
      std::floor(alpha_ * static_cast<double>(std::max<std::int64_t>(pool_ - used_, 0))));
}

bool SwitchBuffer::admits(std::uint32_t input, std::int64_t bytes) const {
  const Input& from = inputs_[input];
  if (pfc_ == PfcKind::kDynamic) {
    return from.headroom + bytes <= headroom_ || shared(from) + bytes <= threshold();
  }
  if (pfc_ == PfcKind::kStatic && headroom_ > 0 && from.held + bytes > xoff_ + headroom_) {
    return false;
  }
  return size_ == 0 || used_ + bytes <= size_;
}

void SwitchBuffer::take(std::uint32_t input, std::int64_t bytes) {
  Input& from = inputs_[input];
  if (pfc_ != PfcKind::kDynamic) {
    from.held += bytes;
    used_ += bytes;
    return;
  }
  const std::int64_t held = from.held + bytes;
  if (held > reserve_ && held - reserve_ > threshold()) {
    from.headroom += bytes;
    return;
  }
  from.held = held;
  if (held > reserve_) used_ += std::min(bytes, held - reserve_);
}

void SwitchBuffer::give(std::uint32_t input, std::int64_t bytes) {
  Input& from = inputs_[input];
  if (pfc_ != PfcKind::kDynamic) {
    from.held -= bytes;
    used_ -= bytes;
    return;
  }
  const std::int64_t of_headroom = std::min(from.headroom, bytes);
  const std::int64_t rest = bytes - of_headroom;
  used_ -= std::min(rest, shared(from));
  from.headroom -= of_headroom;
  from.held -= rest;
}

bool SwitchBuffer::should_pause(std::uint32_t input) const {
  const Input& from = inputs_[input];
  if (from.paused || pfc_ == PfcKind::kNone) return false;
  if (pfc_ == PfcKind::kStatic) return from.held > xoff_;
  return from.headroom > 0 || shared(from) >= threshold();
}

bool SwitchBuffer::should_resume(std::uint32_t input) const {
  const Input& from = inputs_[input];
  if (!from.paused) return false;
  if (pfc_ == PfcKind::kStatic) return from.held < xon_;
  const std::int64_t used = shared(from);
  return from.headroom == 0 && (used == 0 || used + resume_offset_ <= threshold());
}

}  // namespace stepsim
