// DCTCP (RFC 8257; Alizadeh et al., SIGCOMM 2010) with a rate, as the RDMA models of ns-3 have it:
// once a window alpha = (1-g) alpha + g F, where F is the share of marked answers; at the first
// marked answer outside a reduction the rate falls by alpha/2; each window without reduction adds
// `increase`. dctcp_alpha() is the rule for alpha, which streams (hosts/stream.h) share.

#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "sim/network/transport/transport.h"

namespace stepsim {

struct DctcpSettings {
  double gain = 1.0 / 16;
  double initial_alpha = 1;
  Bandwidth increase{615e6 / 8};
  Bandwidth least{100e6 / 8};
};

inline double dctcp_alpha(double alpha, double gain, double marked_share) {
  return (1 - gain) * alpha + gain * marked_share;
}
inline double dctcp_cut(double window, double alpha) {
  return window * (1 - alpha / 2);
}

class Dctcp final : public CongestionControl {
 public:
  Dctcp(const DctcpSettings& settings, double line_rate, double payload)
      : CongestionControl(line_rate),
        settings_(settings),
        line_rate_(line_rate),
        payload_(payload),
        alpha_(settings.initial_alpha) {}

  void on_ack(const AckSeen& ack) override;
  double alpha() const { return alpha_; }

 private:
  const DctcpSettings settings_;
  const double line_rate_;
  const double payload_;
  double alpha_;
  double marked_ = 0;  // answers of this window
  double window_packets_ = 0;
  std::uint64_t window_end_ = 0;  // the window ends when more than this is acknowledged
  std::uint64_t reduced_to_ = 0;  // the reduction ends then
  bool is_reduced_ = false;
};

}  // namespace stepsim
