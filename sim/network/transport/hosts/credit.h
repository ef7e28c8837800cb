// Credit that a receiving host grants to those who send to it, so that together they send at
// `pull_rate` of its link.
//
// PullQueue (NDP): each packet or header that arrives asks for one pull of its message; a pull lets
// one packet go. Pulls of the host leave one after the other, a packet's time / pull_rate apart,
// messages in turn; if none waits and the last is long enough ago, the answer itself pulls.
//
// CreditPacer (EQDS, RCCC): senders say how much they want in all; the pacer grants `pull_credit`
// at a time to those who want more, in turn; the next grant waits the time that the granted bytes
// take. A sender whose wish is met still gets up to a window in advance while nobody else wants
// any. With `htsim_credit` it has a turn more of these each time that its wish was met, also once
// it is complete, as in htsim; otherwise one, and none once it is complete. With `repeats_first`
// senders whose packets were cut come before all others (EQDS).

#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/network/packets/packet_port.h"
#include "sim/network/transport/transport.h"
#include "sim/network/transport/transport_spec.h"

namespace stepsim {

class PullQueue final : public CreditSource {
 public:
  PullQueue(const TransportSpec& spec, double rate);

  std::uint32_t add(std::uint32_t flow);  // returns the number of the message here
  // Asks for a pull. Returns true if it leaves at once: the answer is to carry it.
  bool request(std::uint32_t message, Instant now);
  void forget(std::uint32_t message) { messages_[message].waiting = 0; }
  std::uint64_t granted(std::uint32_t message) const { return messages_[message].granted; }

  Instant timer() const override { return next_at_; }
  void on_timer(Instant now, std::vector<Packet>& pulls) override;

 private:
  struct Message {
    std::uint32_t flow;
    std::uint32_t waiting = 0;  // pulls
    std::uint64_t granted = 0;  // pulls so far
    bool is_queued = false;
  };

  void skip_empty();

  const Instant spacing_;
  const std::uint32_t bytes_;
  std::vector<Message> messages_;
  RingQueue<std::uint32_t> queue_;  // messages with pulls that wait
  Instant next_at_ = kNever;
  Instant last_ = -(Instant{1} << 60);
};

class CreditPacer final : public CreditSource {
 public:
  CreditPacer(const TransportSpec& spec, double rate, double window, bool repeats_first);

  std::uint32_t add(std::uint32_t flow);
  void want(std::uint32_t message, std::uint64_t credit, Instant now);  // in all, bytes
  void repeat(std::uint32_t message, Instant now);                      // a packet was cut
  // The message is complete: no more pulls are sent for it.
  void forget(std::uint32_t message);

  Instant timer() const override { return next_at_; }
  void on_timer(Instant now, std::vector<Packet>& pulls) override;

 private:
  enum class Place : std::uint8_t { kNowhere, kActive, kIdle };
  struct Message {
    std::uint32_t flow;
    std::uint64_t wanted = 0;
    std::uint64_t granted = 0;
    std::uint32_t repeats = 0;  // bytes of cut packets not yet granted
    Place place = Place::kNowhere;
    bool is_repeating = false;
    bool is_listed_idle = false;
    bool is_done = false;
  };

  void activate(std::uint32_t message, Instant now);
  void start(Instant now);
  void list_idle(std::uint32_t message);
  std::uint64_t grant(std::uint32_t message, bool beyond_wish, std::vector<Packet>& pulls);

  const double time_per_byte_;  // ps
  const std::uint64_t credit_;
  const std::uint64_t window_;
  const std::uint32_t packet_;
  const std::uint32_t bytes_;
  const bool repeats_first_;
  const bool htsim_credit_;
  std::vector<Message> messages_;
  RingQueue<std::uint32_t> repeating_;
  RingQueue<std::uint32_t> active_;
  RingQueue<std::uint32_t> idle_;
  Instant next_at_ = kNever;
};

}  // namespace stepsim
