#include "sim/collectives/algorithms/torus/shard_box.h"

#include <bit>
#include <cassert>
#include <utility>

namespace stepsim {

ShardBoxes::ShardBoxes(std::vector<GroupDimension> dimensions, Bytes bytes, Bytes element,
                       const std::vector<std::uint32_t>& shares)
    : dimensions_(std::move(dimensions)), element_bytes_(element.value()) {
  assert(dimensions_.size() <= kMaxDimensions);
  assert(bytes.value() % element.value() == 0);
  for (const GroupDimension& dimension : dimensions_) shards_ *= dimension.size;
  const std::int64_t elements = bytes.value() / element.value();
  for (const std::uint32_t share : shares) cuts_.push_back(cuts_.back() + share);
  if (elements % shards_ != 0) {
    add_up(elements);
  } else {
    for (std::size_t share = 0; share < shares.size(); ++share) {
      elements_of_share_.push_back(in_share(share, elements / shards_));
    }
  }
}

std::int64_t ShardBoxes::in_share(std::size_t share, std::int64_t shard) const {
  return cuts_[share + 1] * shard / pieces() - cuts_[share] * shard / pieces();
}

// The table has one more corner than shards in each dimension. Corners at 0 have nothing below
// them.
void ShardBoxes::add_up(std::int64_t elements) {
  const std::int64_t shards = shards_;
  std::uint32_t corners = 1;
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    corner_stride_[d] = corners;
    corners *= dimensions_[d].size + 1;
  }
  for (std::size_t share = 0; share + 1 < cuts_.size(); ++share) {
    std::vector<std::int64_t> below(corners, 0);
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      const std::int64_t size = (shard + 1) * elements / shards - shard * elements / shards;
      std::size_t corner = 0;
      std::int64_t rest = shard;
      for (std::size_t d = 0; d < dimensions_.size(); ++d) {
        corner += static_cast<std::size_t>(rest % dimensions_[d].size + 1) * corner_stride_[d];
        rest /= dimensions_[d].size;
      }
      below[corner] = in_share(share, size);
    }
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      for (std::size_t corner = corner_stride_[d]; corner < corners; ++corner) {
        const bool at_zero = corner / corner_stride_[d] % (dimensions_[d].size + 1) == 0;
        if (!at_zero) below[corner] += below[corner - corner_stride_[d]];
      }
    }
    elements_below_.push_back(std::move(below));
  }
}

// Inclusion and exclusion: a corner counts against the box for each low side that it is on.
Bytes ShardBoxes::uneven_bytes(const ShardBox& box, std::uint32_t share) const {
  const std::size_t dimensions = dimensions_.size();
  std::int64_t elements = 0;
  for (std::uint32_t low_sides = 0; low_sides < (1U << dimensions); ++low_sides) {
    std::size_t corner = 0;
    for (std::size_t d = 0; d < dimensions; ++d) {
      const bool low = (low_sides >> d & 1) != 0;
      corner += std::size_t{box.begin[d] + (low ? 0 : box.count[d])} * corner_stride_[d];
    }
    const std::int64_t below = elements_below_[share][corner];
    elements += std::popcount(low_sides) % 2 == 0 ? below : -below;
  }
  return Bytes(elements * element_bytes_);
}

void ShardBoxes::append_blocks(const ShardBox& box, std::uint32_t share,
                               std::vector<std::uint32_t>& out) const {
  for (std::uint32_t shard = 0; shard < shards_; ++shard) {
    std::uint32_t rest = shard;
    bool inside = true;
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      const std::uint32_t at = rest % dimensions_[d].size;
      rest /= dimensions_[d].size;
      inside = inside && at >= box.begin[d] && at < box.begin[d] + box.count[d];
    }
    if (!inside) continue;
    for (std::uint32_t piece = cuts_[share]; piece < cuts_[share + 1]; ++piece) {
      out.push_back(piece * shards_ + shard);
    }
  }
}

}  // namespace stepsim
