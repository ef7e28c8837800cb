// AxisRings is the family of ring algorithms: rings along the dimensions of a group, one dimension
// after another, in one or more lanes.
//
//   ring                  one dimension with all members, one lane
//   bidirectional ring    one dimension, two lanes in opposite directions
//   hierarchical          dimensions (gpu, node): reduce-scatter in the node, then across nodes on
//                         what is left; all-gather the other way round
//   overlapped levels     hierarchical, in chunks: lanes of the same order that follow each other.
//   A
//                         chunk enters a phase (a dimension of a reduce-scatter or all-gather) when
//                         the chunk before it has left it, so that all levels work at once
//
// Axes of a torus, all links at once: multi_axis.h.
//
// A reduce-scatter along an axis of n members is n - 1 rounds: in round k the member at coordinate
// c sends the block of coordinate c - k - 1 to its neighbour c + 1, which adds it to its own; after
// the last round it holds the whole sum of block c. An all-gather is n - 1 rounds: in round k it
// passes on the block of coordinate c - k. Lanes of direction -1 mirror both. All-reduce is the
// one after the other. (Patarasu, Yuan 2009; Thakur, Rabenseifner, Gropp 2005.)
//
// On an idle network, with S bytes, n members and links of W bytes/s one way: ring
// reduce-scatter or all-gather (n-1)/n S/W; all-reduce twice that; bidirectional half.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/torus/shard_box.h"
#include "sim/collectives/collective.h"

namespace stepsim {

struct AxisRingLane {
  std::vector<std::uint32_t> order;  // dimensions in the order of the reduce-scatter
  bool reversed = false;             // sends to coordinate - 1 instead of + 1
};

class AxisRings final : public CollectiveAlgorithm {
 public:
  // `follow`: lanes follow each other, phase by phase. REQUIRES: every lane's order is a
  // permutation of the dimensions (one and the same if lanes follow each other); at most
  // kMaxDimensions of them; bytes is a whole number of elements of `element` bytes.
  AxisRings(CollectiveOp op, GroupShape shape, std::vector<AxisRingLane> lanes, Bytes bytes,
            Bytes element, bool follow = false);

  std::uint32_t members() const override { return shape_.members(); }
  std::uint32_t lanes() const override { return static_cast<std::uint32_t>(lanes_.size()); }
  std::uint32_t rounds() const override { return rounds_; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t, std::uint32_t, std::uint32_t) const override { return 1; }
  bool gated() const override { return !last_of_phase_.empty(); }
  std::optional<LaneGate> gate(std::uint32_t lane, std::uint32_t round,
                               std::uint32_t member) const override;
  // Rings of one dimension.
  bool relays() const override { return shape_.dimensions.size() == 1 && !gated(); }
  LaneSum lane_sum(std::uint32_t lane, std::uint32_t member) const override;
  std::uint32_t shards() const override { return shape_.members(); }
  std::uint32_t pieces() const override { return lanes(); }  // piece p of each shard is lane p's
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;
  std::uint32_t shard_of(std::uint32_t member) const override { return position_[member]; }

 private:
  struct Sent {
    std::uint32_t to = 0;
    bool reduce = false;
    ShardBox shards;
  };
  Sent sent(std::uint32_t lane, std::uint32_t round, std::uint32_t member) const;

  CollectiveOp op_;
  GroupShape shape_;
  std::vector<AxisRingLane> lanes_;
  std::vector<std::uint32_t> position_;  // by member
  ShardBoxes boxes_;
  std::uint32_t scatter_rounds_ = 0;  // rounds of a reduce-scatter, or of an all-gather
  std::uint32_t rounds_ = 0;
  std::vector<std::uint32_t> last_of_phase_;  // by round: the last round of its phase; if `follow`
};

}  // namespace stepsim
