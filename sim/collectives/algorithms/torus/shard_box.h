// ShardBoxes says how many bytes a box of shards has. The members of a group stand in a box of
// dimensions (GroupShape), each with the shard of its position. Every shard is cut into pieces, and
// runs of pieces into shares. Algorithms along axes send one share of all shards in a smaller box.
//
// Shard s of E elements is [s E / n, (s + 1) E / n), and its pieces are cut alike. Where all shards
// are equal the bytes of a box are its shards times a share. Otherwise they are a sum over its
// corners, 2^dimensions of them, from a table of n entries for each share.

#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/algorithm.h"
#include "sim/collectives/collective.h"

namespace stepsim {

// A box of coordinates [begin, begin + count) in each dimension; {0, 1} in dimensions that do not
// exist. Shards are numbered like the positions of the group's shape (GroupShape).
struct ShardBox {
  std::array<std::uint32_t, kMaxDimensions> begin{};
  std::array<std::uint32_t, kMaxDimensions> count{1, 1, 1, 1};
};

class ShardBoxes {
 public:
  // `shares`: the number of pieces in each. REQUIRES: at most kMaxDimensions dimensions; bytes is a
  // whole number of elements.
  ShardBoxes(std::vector<GroupDimension> dimensions, Bytes bytes, Bytes element,
             const std::vector<std::uint32_t>& shares);

  std::uint32_t shards() const { return shards_; }
  std::uint32_t pieces() const { return cuts_.back(); }
  Bytes bytes(const ShardBox& box, std::uint32_t share) const {
    if (!elements_below_.empty()) return uneven_bytes(box, share);
    std::int64_t in_box = 1;
    for (const std::uint32_t count : box.count) in_box *= count;
    return Bytes(elements_of_share_[share] * in_box * element_bytes_);
  }
  // Appends block piece * shards() + shard (algorithm.h) for each shard of the box and each piece
  // of the share.
  void append_blocks(const ShardBox& box, std::uint32_t share,
                     std::vector<std::uint32_t>& out) const;

 private:
  Bytes uneven_bytes(const ShardBox& box, std::uint32_t share) const;
  // Returns the elements that a share has of a shard of this size.
  std::int64_t in_share(std::size_t share, std::int64_t shard) const;
  void add_up(std::int64_t elements);

  std::vector<GroupDimension> dimensions_;
  std::uint32_t shards_ = 1;
  std::vector<std::uint32_t> cuts_{0};  // share s has the pieces [cuts_[s], cuts_[s + 1])
  std::int64_t element_bytes_;
  std::vector<std::int64_t> elements_of_share_;  // of a shard, where all are equal
  // Used where shards differ: for each share, the number of elements in all shards below a corner
  // of the box.
  std::array<std::uint32_t, kMaxDimensions> corner_stride_{};
  std::vector<std::vector<std::int64_t>> elements_below_;
};

}  // namespace stepsim
