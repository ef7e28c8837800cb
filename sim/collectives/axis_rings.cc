#include "sim/collectives/axis_rings.h"

#include <cassert>
#include <utility>

namespace stepsim {

AxisRings::AxisRings(CollectiveOp op, GroupShape shape, std::vector<AxisRingLane> lanes,
                     Bytes bytes, Bytes element)
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
}

std::optional<CollectiveMessage> AxisRings::message(std::uint32_t lane, std::uint32_t round,
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
  CollectiveMessage result;
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
  result.bytes = bytes_of(result.shards, lane);
  return result;
}

Bytes AxisRings::bytes_of(const ShardBox& box, std::uint32_t lane) const {
  const std::int64_t shards = shape_.members();
  const auto lanes_count = static_cast<std::int64_t>(lanes_.size());
  std::int64_t in_box = 1;
  for (const std::uint32_t count : box.count) in_box *= count;
  if (elements_ % (shards * lanes_count) == 0) {
    return Bytes(elements_ / (shards * lanes_count) * in_box * element_bytes_);
  }
  // Uneven: shard s is elements [s E / n, (s + 1) E / n), and its pieces are cut alike.
  std::int64_t elements = 0;
  std::array<std::uint32_t, kMaxDimensions> at = box.begin;
  for (std::int64_t i = 0; i < in_box; ++i) {
    std::int64_t shard = 0;
    for (std::size_t d = shape_.dimensions.size(); d-- > 0;) {
      shard = shard * shape_.dimensions[d].size + at[d];
    }
    const std::int64_t size = (shard + 1) * elements_ / shards - shard * elements_ / shards;
    elements += (lane + 1) * size / lanes_count - lane * size / lanes_count;
    for (std::size_t d = 0; d < kMaxDimensions; ++d) {
      if (++at[d] < box.begin[d] + box.count[d]) break;
      at[d] = box.begin[d];
    }
  }
  return Bytes(elements * element_bytes_);
}

}  // namespace stepsim
