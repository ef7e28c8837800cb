// The sender's control that uet-htsim calls DCTCP: no alpha, but `cut` of the newly acknowledged
// bytes for each marked answer, one packet more a window, and a trimmed packet's bytes less.

#pragma once

#include <algorithm>

#include "sim/network/transport/transport.h"

namespace stepsim {

struct UecDctcpSettings {
  double cut = 1.0 / 3;
};

class UecDctcp final : public CongestionControl {
 public:
  UecDctcp(const UecDctcpSettings& settings, double line_rate, double window, double packet)
      : CongestionControl(line_rate, window), cut_(settings.cut), packet_(packet) {}

  void on_ack(const AckSeen& ack) override {
    window_ += ack.marked ? -cut_ * ack.newly : ack.newly * packet_ / window_;
    window_ = std::max(window_, packet_);
  }
  void on_trimmed(const TrimSeen& trim) override {
    window_ = std::max(window_ - trim.bytes, packet_);
  }
  void on_timeout(Instant, double bytes) override { window_ = std::max(window_ - bytes, packet_); }

 private:
  const double cut_;
  const double packet_;
};

}  // namespace stepsim
