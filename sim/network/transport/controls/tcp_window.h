// The window of TCP: slow start up to a threshold, then a segment more a window; a loss halves it
// (Reno), a time-out leaves one segment. With `reacts_to_marks` it is DCTCP (RFC 8257): alpha once
// a window of data, and at most one cut by alpha/2 a window.

#pragma once

#include <cstdint>

#include "sim/network/transport/controls/dctcp.h"
#include "sim/network/transport/transport.h"

namespace stepsim {

class TcpWindow final : public CongestionControl {
 public:
  TcpWindow(const DctcpSettings& settings, double line_rate, double window, double segment,
            bool reacts_to_marks)
      : CongestionControl(line_rate, window),
        settings_(settings),
        segment_(segment),
        reacts_to_marks_(reacts_to_marks),
        alpha_(settings.initial_alpha) {}

  void on_ack(const AckSeen& ack) override;
  void on_loss(Instant now) override;
  void on_timeout(Instant now, double bytes) override;

 private:
  void see_marks(const AckSeen& ack);

  const DctcpSettings settings_;
  const double segment_;
  const bool reacts_to_marks_;
  double alpha_;
  double threshold_ = kUnlimited;
  double marked_ = 0;  // bytes of this window
  double all_ = 0;
  std::uint64_t window_end_ = 0;
  std::uint64_t reduced_to_ = 0;
};

}  // namespace stepsim
