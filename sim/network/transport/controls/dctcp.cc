#include "sim/network/transport/controls/dctcp.h"

#include <algorithm>
#include <cmath>

namespace stepsim {

void Dctcp::on_ack(const AckSeen& ack) {
  if (ack.marked) ++marked_;
  const bool window_ends = ack.acknowledged > window_end_;
  if (window_ends) {
    const auto packets = [this](std::uint64_t bytes) {
      return std::floor(static_cast<double>(bytes) / payload_) + 1;
    };
    if (window_end_ == 0) {
      window_packets_ = packets(ack.next);
    } else {
      alpha_ = dctcp_alpha(alpha_, settings_.gain, std::min(1.0, marked_ / window_packets_));
      marked_ = 0;
      window_packets_ = packets(ack.next - ack.acknowledged);
    }
    window_end_ = ack.next;
  }
  if (is_reduced_ && ack.acknowledged > reduced_to_) is_reduced_ = false;
  if (ack.marked && !is_reduced_) {
    rate_ = std::max(settings_.least.value(), dctcp_cut(rate_, alpha_));
    is_reduced_ = true;
    reduced_to_ = ack.next;
  }
  if (!is_reduced_ && window_ends) {
    rate_ = std::min(line_rate_, rate_ + settings_.increase.value());
  }
}

}  // namespace stepsim
