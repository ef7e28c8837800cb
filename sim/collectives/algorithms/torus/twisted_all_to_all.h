// TwistedAllToAll is an all-to-all hop by hop over a whole twisted torus
// (topology/kinds/torus/twisted_torus.h). Every pair of members is served over all shortest ways
// between the two, a way being a number of hops ahead or back on each axis. The cables of the twist
// make these ways shorter than in the torus of the same shape: 3.44 hops instead of 4 on average in
// 4x4x8.
//
// All places of a twisted torus are alike, and so are its six directions once equally short ways
// carry equal shares: every link carries the same bytes. With S bytes a member, links of W bytes/s
// one way and a mean of d hops (over all members, the own place included), an idle network takes
// S d / (6 W) plus the trips: no algorithm is faster.
//
// Lanes: one for each rotation of the axis order and each choice of a direction on every axis, as
// in torus_all_to_all.h. A way of no hops on an axis counts as one ahead. Each shard is cut into a
// share for each rotation, and that into `splits` pieces, which its ways divide evenly.
//
// Memory O(members) for the ways from one member, which are those of all. Messages are whole bytes:
// each is rounded to the nearest.

#pragma once

#include <array>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/torus/torus_grid.h"

namespace stepsim {

class TwistedAllToAll final : public CollectiveAlgorithm {
 public:
  // REQUIRES: shape.twists().
  TwistedAllToAll(const CollectiveTask& task, GroupShape shape);

  std::uint32_t members() const override { return shape_.members(); }
  std::uint32_t lanes() const override { return grid_.axes() * directions(); }
  std::uint32_t rounds() const override { return rounds_; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  std::uint32_t shards() const override { return members() * members(); }
  std::uint32_t pieces() const override { return grid_.axes() * splits_; }
  bool cuts_equally() const override { return true; }
  std::uint32_t shard_of(std::uint32_t member) const override { return position_[member]; }
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  using Hops = std::array<std::uint32_t, kMaxDimensions>;  // by axis
  struct Way {
    Hops hops{};
    std::uint32_t number = 0;  // among the equally short ways to the same place
    std::uint32_t alike = 1;   // how many of these there are
  };
  struct Hop {  // where a round stands: the axes before `phase` in the order are done
    std::uint32_t rotation = 0;
    std::uint32_t directions = 0;  // bit i: backwards on axis i
    std::uint32_t phase = 0;
    std::uint32_t number = 0;  // hops along the axis before this one
  };
  std::uint32_t directions() const { return 1U << grid_.axes(); }
  std::uint32_t axis_of(const Hop& hop, std::uint32_t phase) const {
    return (hop.rotation + phase) % grid_.axes();
  }
  static bool backwards(std::uint32_t directions, std::uint32_t axis) {
    return (directions >> axis & 1) != 0;
  }
  void find_ways();
  Hop hop(std::uint32_t lane, std::uint32_t round) const;
  std::uint32_t walk(std::uint32_t position, std::uint32_t axis, std::uint32_t hops,
                     bool back) const;
  // Returns the pieces that every member sends in this round: one for each path that continues.
  std::int64_t pieces_sent(const Hop& hop) const;

  CollectiveTask task_;
  GroupShape shape_;
  TorusGrid grid_;
  std::vector<std::uint32_t> position_;          // by member
  std::vector<std::vector<Way>> ways_;           // by directions; from any member
  std::vector<std::vector<std::int64_t>> sent_;  // by directions; by axis and hop
  Hops most_hops_{};
  std::uint32_t splits_ = 1;
  std::uint32_t rounds_ = 0;
};

}  // namespace stepsim
