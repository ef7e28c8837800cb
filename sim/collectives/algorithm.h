// CollectiveAlgorithm is a collective as messages: which member sends what to whom, in which round.
// It is a pure function of (lane, round, member) and is evaluated lazily; nothing of size n^2 is
// ever stored.
//
// The data are cut into as many shards as the group has members, and each shard into one piece a
// lane. Lanes run side by side (two directions of a ring, rotated axis orders of a torus) and never
// touch each other's pieces. Within a lane a member goes through the rounds in order: it may send
// the message of round r when its message of round r - 1 has been sent and what it was to receive
// in the rounds before r has arrived.
//
// A message carries a box of shards: shards are numbered like the positions of the group's shape
// (GroupShape), and a box is one coordinate or a whole side in each dimension. Where it arrives it
// replaces (copy) or is added to (reduce) what the receiver has of these shards.

#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sim/base/units.h"

namespace stepsim {

inline constexpr std::size_t kMaxDimensions = 4;

// Coordinates [begin, begin + count) of each dimension; {0, 1} in dimensions that are not there.
struct ShardBox {
  std::array<std::uint32_t, kMaxDimensions> begin{};
  std::array<std::uint32_t, kMaxDimensions> count{1, 1, 1, 1};
};

struct CollectiveMessage {
  std::uint32_t to = 0;  // member
  ShardBox shards;
  bool reduce = false;
  Bytes bytes;
};

class CollectiveAlgorithm {
 public:
  virtual ~CollectiveAlgorithm() = default;

  virtual std::uint32_t members() const = 0;
  virtual std::uint32_t lanes() const = 0;
  virtual std::uint32_t rounds() const = 0;  // the same for every lane

  // What `member` sends in this round; nothing where it only receives.
  virtual std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                                   std::uint32_t member) const = 0;

  // The shard that `member` owns: what it brings to an all-gather and keeps of a reduce-scatter.
  virtual std::uint32_t shard_of(std::uint32_t member) const = 0;
};

}  // namespace stepsim
