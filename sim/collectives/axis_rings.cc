#include "sim/collectives/axis_rings.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace stepsim {

AxisRings::AxisRings(CollectiveOp op, GroupShape shape, std::vector<AxisRingLane> lanes,
                     Bytes bytes, Bytes element, bool follow)
    : op_(op),
      shape_(std::move(shape)),
      lanes_(std::move(lanes)),
      position_(shape_.members()),
      elements_(bytes.value() / element.value()),
      element_bytes_(element.value()) {
  assert(shape_.dimensions.size() <= kMaxDimensions);
  assert(bytes.value() % element.value() == 0);
  for (std::uint32_t position = 0; position < shape_.members(); ++position) {
    position_[shape_.order[position]] = position;
  }
  for (const GroupDimension& dimension : shape_.dimensions) scatter_rounds_ += dimension.size - 1;
  rounds_ = scatter_rounds_ * (op == CollectiveOp::kAllReduce ? 2 : 1);
  const auto pieces = static_cast<std::int64_t>(shape_.members() * lanes_.size());
  if (elements_ % pieces != 0) add_up_uneven_pieces();
  if (!follow) return;
  std::vector<std::uint32_t> order = lanes_.front().order;
  if (op == CollectiveOp::kAllGather) std::ranges::reverse(order);
  for (const bool back : {false, true}) {
    if (back && op != CollectiveOp::kAllReduce) break;
    if (back) std::ranges::reverse(order);
    for (const std::uint32_t dimension : order) {
      const std::uint32_t in_phase = shape_.dimensions[dimension].size - 1;
      const auto first = static_cast<std::uint32_t>(last_of_phase_.size());
      last_of_phase_.insert(last_of_phase_.end(), in_phase, first + in_phase - 1);
    }
  }
}

std::optional<LaneGate> AxisRings::gate(std::uint32_t lane, std::uint32_t round,
                                        std::uint32_t) const {
  if (lane == 0) return std::nullopt;
  return LaneGate{.lane = lane - 1, .round = last_of_phase_[round]};
}

std::optional<CollectiveMessage> AxisRings::message(std::uint32_t lane, std::uint32_t round,
                                                    std::uint32_t member) const {
  const Sent what = sent(lane, round, member);
  return CollectiveMessage{
      .to = what.to, .bytes = bytes_of(what.shards, lane), .reduce = what.reduce};
}

void AxisRings::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                       std::vector<std::uint32_t>& out) const {
  const ShardBox box = sent(lane, round, member).shards;
  for (std::uint32_t shard = 0; shard < shape_.members(); ++shard) {
    std::uint32_t rest = shard;
    bool inside = true;
    for (std::size_t d = 0; d < shape_.dimensions.size(); ++d) {
      const std::uint32_t at = rest % shape_.dimensions[d].size;
      rest /= shape_.dimensions[d].size;
      inside = inside && at >= box.begin[d] && at < box.begin[d] + box.count[d];
    }
    if (inside) out.push_back(lane * shape_.members() + shard);
  }
}

AxisRings::Sent AxisRings::sent(std::uint32_t lane, std::uint32_t round,
                                std::uint32_t member) const {
  const bool scatters = op_ != CollectiveOp::kAllGather && round < scatter_rounds_;
  const std::vector<std::uint32_t>& order = lanes_[lane].order;
  // A gather is the mirror of a scatter: its last rounds are along the first dimension.
  std::uint32_t step = round % scatter_rounds_;
  std::size_t phase = 0;
  if (scatters) {
    while (step >= shape_.dimensions[order[phase]].size - 1) {
      step -= shape_.dimensions[order[phase++]].size - 1;
    }
  } else {
    phase = order.size() - 1;
    while (step >= shape_.dimensions[order[phase]].size - 1) {
      step -= shape_.dimensions[order[phase--]].size - 1;
    }
  }

  // The state of the data is the same in both: of dimensions before `phase` in the order only the
  // own coordinate is there, dimensions after it are whole.
  Sent result;
  std::uint32_t rest = position_[member];
  std::uint32_t stride = 1;
  std::array<std::uint32_t, kMaxDimensions> coordinate{};
  std::array<std::uint32_t, kMaxDimensions> strides{};
  for (std::size_t d = 0; d < shape_.dimensions.size(); ++d) {
    coordinate[d] = rest % shape_.dimensions[d].size;
    rest /= shape_.dimensions[d].size;
    strides[d] = stride;
    stride *= shape_.dimensions[d].size;
  }
  for (std::size_t other = 0; other < order.size(); ++other) {
    const std::uint32_t d = order[other];
    if (other < phase) {
      result.shards.begin[d] = coordinate[d];
      result.shards.count[d] = 1;
    } else {
      result.shards.begin[d] = 0;
      result.shards.count[d] = shape_.dimensions[d].size;
    }
  }
  const std::uint32_t d = order[phase];
  const std::uint32_t n = shape_.dimensions[d].size;
  const std::uint32_t back = scatters ? step + 1 : step;  // blocks behind, against the direction
  const bool reversed = lanes_[lane].reversed;
  const std::uint32_t block = (coordinate[d] + (reversed ? back : n - back)) % n;
  result.shards.begin[d] = block;
  result.shards.count[d] = 1;
  const std::uint32_t neighbour = (coordinate[d] + (reversed ? n - 1 : 1)) % n;
  result.to = shape_.order[position_[member] + (neighbour - coordinate[d]) * strides[d]];
  result.reduce = scatters;
  return result;
}

// Shard s is the elements [s E / n, (s + 1) E / n), and its pieces are cut alike. The table has one
// corner more than shards in each dimension; corners at 0 have nothing below them.
void AxisRings::add_up_uneven_pieces() {
  const std::int64_t shards = shape_.members();
  const auto lanes = static_cast<std::int64_t>(lanes_.size());
  std::uint32_t corners = 1;
  for (std::size_t d = 0; d < shape_.dimensions.size(); ++d) {
    corner_stride_[d] = corners;
    corners *= shape_.dimensions[d].size + 1;
  }
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    std::vector<std::int64_t> below(corners, 0);
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      const std::int64_t size = (shard + 1) * elements_ / shards - shard * elements_ / shards;
      std::size_t corner = 0;
      std::int64_t rest = shard;
      for (std::size_t d = 0; d < shape_.dimensions.size(); ++d) {
        corner +=
            static_cast<std::size_t>(rest % shape_.dimensions[d].size + 1) * corner_stride_[d];
        rest /= shape_.dimensions[d].size;
      }
      below[corner] = (lane + 1) * size / lanes - lane * size / lanes;
    }
    for (std::size_t d = 0; d < shape_.dimensions.size(); ++d) {
      for (std::size_t corner = corner_stride_[d]; corner < corners; ++corner) {
        const bool at_zero = corner / corner_stride_[d] % (shape_.dimensions[d].size + 1) == 0;
        if (!at_zero) below[corner] += below[corner - corner_stride_[d]];
      }
    }
    elements_below_.push_back(std::move(below));
  }
}

Bytes AxisRings::bytes_of(const ShardBox& box, std::uint32_t lane) const {
  if (elements_below_.empty()) {
    std::int64_t in_box = 1;
    for (const std::uint32_t count : box.count) in_box *= count;
    const auto pieces = static_cast<std::int64_t>(shape_.members() * lanes_.size());
    return Bytes(elements_ / pieces * in_box * element_bytes_);
  }
  // Inclusion and exclusion: a corner counts against the box for each low side that it is on.
  const std::size_t dimensions = shape_.dimensions.size();
  std::int64_t elements = 0;
  for (std::uint32_t low_sides = 0; low_sides < (1U << dimensions); ++low_sides) {
    std::size_t corner = 0;
    for (std::size_t d = 0; d < dimensions; ++d) {
      const bool low = (low_sides >> d & 1) != 0;
      corner += std::size_t{box.begin[d] + (low ? 0 : box.count[d])} * corner_stride_[d];
    }
    const std::int64_t below = elements_below_[lane][corner];
    elements += std::popcount(low_sides) % 2 == 0 ? below : -below;
  }
  return Bytes(elements * element_bytes_);
}

}  // namespace stepsim
