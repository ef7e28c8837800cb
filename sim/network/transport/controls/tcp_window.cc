#include "sim/network/transport/controls/tcp_window.h"

#include <algorithm>

namespace stepsim {

void TcpWindow::on_ack(const AckSeen& ack) {
  if (reacts_to_marks_) see_marks(ack);
  if (ack.acknowledged <= reduced_to_) return;
  if (window_ < threshold_) {
    window_ = std::min(window_ + ack.newly, threshold_);
  } else {
    window_ += segment_ * ack.newly / window_;
  }
}

void TcpWindow::see_marks(const AckSeen& ack) {
  all_ += ack.newly;
  if (ack.marked) marked_ += ack.newly;
  if (window_end_ == 0) {
    window_end_ = ack.next;
  } else if (ack.acknowledged >= window_end_) {
    alpha_ = dctcp_alpha(alpha_, settings_.gain, all_ > 0 ? marked_ / all_ : 0);
    window_end_ = ack.next;
    marked_ = 0;
    all_ = 0;
  }
  if (!ack.marked || ack.acknowledged <= reduced_to_) return;
  window_ = std::max(dctcp_cut(window_, alpha_), 2 * segment_);
  threshold_ = window_;
  reduced_to_ = ack.next;
}

void TcpWindow::on_loss(Instant) {
  threshold_ = std::max(window_ / 2, 2 * segment_);
  window_ = threshold_;
}

void TcpWindow::on_timeout(Instant, double) {
  threshold_ = std::max(window_ / 2, 2 * segment_);
  window_ = segment_;
}

}  // namespace stepsim
