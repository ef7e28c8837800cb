// ShardBoxes says how many bytes a box of shards has. The members of a group stand in a box of
// dimensions (GroupShape), each with the shard of its position; every shard is cut into pieces, and
// what algorithms along axes send is one piece of all shards in a smaller box.
//
// Shard s of E elements is [s E / n, (s + 1) E / n), and its pieces are cut alike. Where all are
// equal a box is counted; otherwise it is a sum over its corners, 2^dimensions of them, from a
// table of n entries for each piece.

#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/algorithm.h"
#include "sim/collectives/collective.h"

namespace stepsim {

// Coordinates [begin, begin + count) of each dimension; {0, 1} in dimensions that are not there.
// Shards are numbered like the positions of the group's shape (GroupShape).
struct ShardBox {
  std::array<std::uint32_t, kMaxDimensions> begin{};
  std::array<std::uint32_t, kMaxDimensions> count{1, 1, 1, 1};
};

class ShardBoxes {
 public:
  // REQUIRES: at most kMaxDimensions dimensions; bytes is a whole number of elements.
  ShardBoxes(std::vector<GroupDimension> dimensions, Bytes bytes, Bytes element,
             std::uint32_t pieces);

  std::uint32_t shards() const { return shards_; }
  std::uint32_t pieces() const { return pieces_; }
  Bytes bytes(const ShardBox& box, std::uint32_t piece) const {
    if (!elements_below_.empty()) return uneven_bytes(box, piece);
    std::int64_t in_box = 1;
    for (const std::uint32_t count : box.count) in_box *= count;
    return Bytes(elements_of_piece_ * in_box * element_bytes_);
  }
  // Appends block piece * shards() + shard of each shard of the box (algorithm.h).
  void append_blocks(const ShardBox& box, std::uint32_t piece,
                     std::vector<std::uint32_t>& out) const;

 private:
  Bytes uneven_bytes(const ShardBox& box, std::uint32_t piece) const;
  void add_up(std::int64_t elements);

  std::vector<GroupDimension> dimensions_;
  std::uint32_t shards_ = 1;
  std::uint32_t pieces_;
  std::int64_t element_bytes_;
  std::int64_t elements_of_piece_;  // of each shard, where all are equal
  // Where shards and pieces do not divide the elements: for each piece the number of elements in
  // all shards below a corner of the box.
  std::array<std::uint32_t, kMaxDimensions> corner_stride_{};
  std::vector<std::vector<std::int64_t>> elements_below_;
};

}  // namespace stepsim
