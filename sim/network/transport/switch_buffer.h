// SwitchBuffer is the memory that the ports of one switch share, and when it pauses those who send
// to it (802.1Qbb). It counts what came in by each input port until it leaves.
//
//   if (!buffer.admits(input, bytes)) drop; else buffer.take(input, bytes);
//   if (buffer.should_pause(input)) { buffer.set_paused(input, true); ... }
//   buffer.give(input, bytes);                          // as the packet leaves
//   if (buffer.should_resume(input)) ...
//
// Static: an input is paused while it holds more than xoff and until it holds less than xon.
// Dynamic (Choudhury and Hahne 1998): its threshold is alpha times what is free of the pool, which
// is the buffer without every port's reserve and headroom. An input holds its own reserve first,
// then part of the pool up to the threshold, then headroom; it is paused from the threshold on.
// What the headroom can't hold is dropped. Without PFC a packet is dropped if the buffer is full.
//
// All sizes in bytes. O(1) each.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/transport/transport_spec.h"

namespace stepsim {

// Returns the probability that a packet is marked while a port holds so many bytes of data: 0 up to
// ecn_low, rising linearly to ecn_most at ecn_high, 1 above.
double marking_probability(const SwitchSpec& spec, std::int64_t queue);

class SwitchBuffer {
 public:
  SwitchBuffer(const SwitchSpec& spec, std::uint32_t inputs);

  bool admits(std::uint32_t input, std::int64_t bytes) const;
  void take(std::uint32_t input, std::int64_t bytes);
  void give(std::uint32_t input, std::int64_t bytes);

  bool should_pause(std::uint32_t input) const;
  bool should_resume(std::uint32_t input) const;
  bool is_paused(std::uint32_t input) const { return inputs_[input].paused; }
  void set_paused(std::uint32_t input, bool paused) { inputs_[input].paused = paused; }

  // Returns the share of the pool from which on an input is paused; dynamic thresholds only.
  std::int64_t threshold() const;
  std::int64_t held(std::uint32_t input) const {
    return inputs_[input].held + inputs_[input].headroom;
  }

 private:
  struct Input {
    std::int64_t held = 0;      // reserve and pool
    std::int64_t headroom = 0;  // in use
    bool paused = false;
  };

  std::int64_t shared(const Input& input) const {
    return input.held > reserve_ ? input.held - reserve_ : 0;
  }

  PfcKind pfc_;
  std::int64_t size_;  // 0: no limit
  std::int64_t pool_;
  std::int64_t reserve_;
  std::int64_t headroom_;
  std::int64_t xoff_;
  std::int64_t xon_;
  std::int64_t resume_offset_;
  double alpha_;
  std::int64_t used_ = 0;  // dynamic: of the pool; otherwise: of the buffer
  std::vector<Input> inputs_;
};

}  // namespace stepsim
