// TorusAllToAll is an all-to-all hop by hop along the axes of a torus, one axis after another. On
// each axis data take the shorter way round; data for the member exactly half round go half each
// way. A torus with a twist: twisted_all_to_all.h.
//
// There is a lane for each rotation of the axis order and each choice of a direction on every axis,
// so that all links of all axes work at once. On k axes each shard is cut into k 2^k pieces. Piece
// (o, t) takes the axes in order o. On axis i it goes the shorter way, and in direction t_i where
// both ways are equally short. Lane (o, s) carries the pieces (o, t) that go in the directions s.
// In hop h along an axis a member passes on what comes from h places behind and goes further.
//
// On an idle torus of links of W bytes/s one way, S bytes a member, every axis wrapped:
// S max(n_i) / (8 W) when the axes are equal or rounds overlap; a line costs twice that (FORMULAS
// B6). Messages are whole bytes: each is rounded to the nearest.

#pragma once

#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/torus/torus_grid.h"

namespace stepsim {

class TorusAllToAll final : public CollectiveAlgorithm {
 public:
  // REQUIRES: all dimensions are torus axes, at most kMaxDimensions.
  TorusAllToAll(const CollectiveTask& task, GroupShape shape);

  std::uint32_t members() const override { return shape_.members(); }
  std::uint32_t lanes() const override { return axes() * directions(); }
  std::uint32_t rounds() const override { return rounds_; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  std::uint32_t shards() const override { return members() * members(); }
  std::uint32_t pieces() const override { return lanes(); }
  bool cuts_equally() const override { return true; }
  std::uint32_t shard_of(std::uint32_t member) const override { return position_[member]; }
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  // Hop is the place of a round: the axes before `phase` in the order are done.
  struct Hop {
    std::uint32_t order = 0;       // rotation
    std::uint32_t directions = 0;  // bit i: backwards on axis i
    std::uint32_t phase = 0;
    std::uint32_t number = 0;  // hops along the axis before this one
  };
  std::uint32_t axes() const { return static_cast<std::uint32_t>(shape_.dimensions.size()); }
  std::uint32_t directions() const { return 1U << axes(); }
  std::uint32_t hops_along(std::uint32_t axis) const;
  std::uint32_t axis_of(const Hop& hop, std::uint32_t phase) const {
    return (hop.order + phase) % axes();
  }
  Hop hop(std::uint32_t lane, std::uint32_t round) const;
  // Returns the pieces that cross from this position, in units of one piece.
  std::int64_t pieces_sent(const Hop& hop, std::uint32_t position) const;

  CollectiveTask task_;
  GroupShape shape_;
  TorusGrid grid_;
  std::vector<std::uint32_t> position_;  // by member
  std::uint32_t rounds_ = 0;
};

}  // namespace stepsim
