#include "sim/collectives/algorithms/torus/axis_rings.h"

#include <algorithm>
#include <utility>

namespace stepsim {

AxisRings::AxisRings(CollectiveOp op, GroupShape shape, std::vector<AxisRingLane> lanes,
                     Bytes bytes, Bytes element, bool follow)
    : op_(op),
      shape_(std::move(shape)),
      lanes_(std::move(lanes)),
      position_(shape_.members()),
      boxes_(shape_.dimensions, bytes, element, std::vector<std::uint32_t>(lanes_.size(), 1)) {
  for (std::uint32_t position = 0; position < shape_.members(); ++position) {
    position_[shape_.order[position]] = position;
  }
  for (const GroupDimension& dimension : shape_.dimensions) scatter_rounds_ += dimension.size - 1;
  rounds_ = scatter_rounds_ * (op == CollectiveOp::kAllReduce ? 2 : 1);
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
      .to = what.to, .bytes = boxes_.bytes(what.shards, lane), .reduce = what.reduce};
}

// The rounds of a reduce-scatter pass all shards but the member's own, those of an all-gather all
// but that of the member in front, which that one has brought.
LaneSum AxisRings::lane_sum(std::uint32_t lane, std::uint32_t member) const {
  const std::uint32_t to = sent(lane, 0, member).to;
  const auto bytes_of = [&](std::uint32_t first, std::uint32_t count) {
    ShardBox box;
    box.begin[0] = first;
    box.count[0] = count;
    return boxes_.bytes(box, lane);
  };
  const Bytes all = bytes_of(0, shape_.members());
  Bytes sum;
  if (op_ != CollectiveOp::kAllGather) sum += all - bytes_of(position_[member], 1);
  if (op_ != CollectiveOp::kReduceScatter) sum += all - bytes_of(position_[to], 1);
  return {.to = to, .bytes = sum};
}

void AxisRings::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                       std::vector<std::uint32_t>& out) const {
  boxes_.append_blocks(sent(lane, round, member).shards, lane, out);
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

  // Both directions see the same data. Along dimensions before `phase` in the order, the member has
  // only its own coordinate. Dimensions after it are whole.
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

}  // namespace stepsim
