// PathChoice gives each packet of a message the number of its path, by the policy of the spec:
//
//   given_route      always 0
//   ecmp_hash        one random number for the message
//   spray_random     a random number each
//   spray_permute    every path once in a random order, then in a new one
//   spray_adaptive   an entropy each, hashed to a path: those of unmarked answers again first,
//                    oldest first; else the next in a random order that is not to be skipped. A
//                    mark or a trimmed packet makes its entropy be skipped so many turns.
//
// Random numbers depend on the seed, the message and the position only.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/packets/packet_port.h"
#include "sim/network/transport/packet.h"
#include "sim/network/transport/transport_spec.h"

namespace stepsim {

class PathChoice {
 public:
  PathChoice() = default;
  // `paths`: how many there are; spray_permute only.
  PathChoice(const TransportSpec& spec, std::uint64_t seed, std::uint32_t paths);

  // Returns the entropy of the next packet, and its path.
  std::uint32_t next();
  std::uint32_t path_of(std::uint32_t entropy) const;
  // Returns a path for an answer.
  std::uint32_t answer_path();
  void on_answer(const Packet& answer);

 private:
  std::uint32_t next_adaptive();
  void reorder();

  PathPolicy policy_ = PathPolicy::kGivenRoute;
  std::uint32_t paths_ = 1;
  std::uint32_t skip_per_mark_ = 0;
  std::uint32_t skip_per_trim_ = 0;
  std::uint32_t most_skips_ = 0;
  bool reuses_ = false;
  std::uint64_t seed_ = 0;
  std::uint64_t drawn_ = 0;
  std::uint32_t position_ = 0;  // in this round
  std::uint32_t round_xor_ = 0;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint8_t> skips_;  // by entropy
  RingQueue<std::uint32_t> good_;
};

}  // namespace stepsim
