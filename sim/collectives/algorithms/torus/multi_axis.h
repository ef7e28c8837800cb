// MultiAxis is all-gather, reduce-scatter and all-reduce along the axes of a torus, with every link
// of every axis at work: one rotation of the axis order for each axis, each with its share of the
// data, and on every axis both directions at once.
//
// An all-gather along an axis of n members passes whole shards on, to the right and to the left: in
// round k the member at coordinate c sends the shard of c - k to c + 1, and that of c + k to c - 1.
//
//   wrapped   0 - 1 - 2 - 3 - 0    a shard goes floor(n/2) places each way. Of an even n the shard
//                                  of the member opposite comes half from each side, so its last
//                                  round is half as long: (n-1)/n S/(2 W), floor(n/2) trips (B1,
//                                  B7)
//   line      0 - 1 - 2 - 3        a shard goes as far as there are members: n-1 rounds. The link
//                                  to an end carries the other n-1 shards: (n-1)/n S/W (B3)
//
// A reduce-scatter is the same backwards in time: in round k of K the member at c adds up what it
// has of the shard of c + K - k and sends it to c + 1, the farthest first; both ways alike. What is
// gathered on one axis is what is passed on along the next one.
//
// M axes of n_i members, N in all, and a share of the data for each rotation (B4): an M-th, but on
// lines of unequal length as rotation_shares.h says.
//
//   all wrapped  (N-1)/N S/(2 M W) for equal axes
//   all lines    (N-1)/N S/(M W)
//   others       the busiest axis: the sum over rotations of what reaches it
//   trips        the sum over axes of floor(n_i/2), or n_i - 1 on a line
//
// A level of switches outside a torus (slices over a data-centre network) comes after all axes in
// every rotation and is a ring: the members at the same place of each slice share its ports.
//
// Lanes: two for each rotation, to the right and to the left. They share the data of a rotation, so
// a lane enters an axis when its partner has left the one before. The share of a rotation is cut
// into the halves that come from the two sides. (Sack, Gropp 2012; "How to Scale Your Model",
// Sharded matrices.)

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/torus/shard_box.h"
#include "sim/collectives/collective.h"

namespace stepsim {

class MultiAxis final : public CollectiveAlgorithm {
 public:
  struct Rotation {
    std::vector<std::uint32_t> order;  // dimensions, as a reduce-scatter goes through them
    std::uint32_t share = 1;           // its part of the data: share over the sum of all shares
  };
  // REQUIRES: each order is a permutation of the dimensions; is_ring_op(task.op).
  MultiAxis(const CollectiveTask& task, GroupShape shape, std::vector<Rotation> rotations);

  std::uint32_t members() const override { return shape_.members(); }
  std::uint32_t lanes() const override { return 2 * static_cast<std::uint32_t>(rotations_.size()); }
  std::uint32_t rounds() const override { return rounds_; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  bool gated() const override { return shape_.dimensions.size() > 1 || all_reduces(); }
  std::optional<LaneGate> gate(std::uint32_t lane, std::uint32_t round,
                               std::uint32_t member) const override;
  std::uint32_t shards() const override { return shape_.members(); }
  std::uint32_t pieces() const override { return boxes_.pieces(); }
  std::uint32_t shard_of(std::uint32_t member) const override { return position_[member]; }
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  // Phase is the place of a round in a rotation.
  struct Phase {
    bool scatters = false;
    std::uint32_t place = 0;  // place of the dimension in the order
    std::uint32_t dimension = 0;
    std::uint32_t step = 0;   // round of the phase
    std::uint32_t first = 0;  // round of the lane with which the phase begins
  };
  struct Sent {
    std::uint32_t to = 0;  // position
    bool reduce = false;
    bool half = false;  // one half goes this way and the other half the other way
    ShardBox shards;
  };
  static bool backwards(std::uint32_t lane) { return lane % 2 == 1; }
  bool all_reduces() const { return task_.op == CollectiveOp::kAllReduce; }
  bool is_ring(std::uint32_t dimension) const {
    return shape_.dimensions[dimension].wraps || !shape_.dimensions[dimension].torus_axis;
  }
  std::uint32_t rounds_along(std::uint32_t dimension) const;
  Phase phase(std::uint32_t lane, std::uint32_t round) const;
  std::uint32_t coordinate(std::uint32_t position, std::uint32_t dimension) const {
    return position / stride_[dimension] % shape_.dimensions[dimension].size;
  }
  std::optional<std::uint32_t> neighbour(std::uint32_t position, std::uint32_t dimension,
                                         bool back) const;
  // Returns the message of the member at a position; nullopt at the end of a line, or if the member
  // has nothing to send yet.
  std::optional<Sent> sent(std::uint32_t lane, std::uint32_t round, std::uint32_t position) const;

  CollectiveTask task_;
  GroupShape shape_;
  std::vector<Rotation> rotations_;
  std::vector<std::uint32_t> position_;  // by member
  std::vector<std::uint32_t> stride_;    // by dimension
  ShardBoxes boxes_;
  std::uint32_t scatter_rounds_ = 0;
  std::uint32_t rounds_ = 0;
};

}  // namespace stepsim
