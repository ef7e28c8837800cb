#include "sim/collectives/algorithms/torus/multi_axis.h"

#include <cassert>
#include <utility>

namespace stepsim {
namespace {

// Returns the share of each lane: both halves of every rotation.
std::vector<std::uint32_t> by_lane(const std::vector<MultiAxis::Rotation>& rotations) {
  std::vector<std::uint32_t> shares;
  for (const MultiAxis::Rotation& rotation : rotations) {
    shares.insert(shares.end(), 2, rotation.share);
  }
  return shares;
}

}  // namespace

MultiAxis::MultiAxis(const CollectiveTask& task, GroupShape shape, std::vector<Rotation> rotations)
    : task_(task),
      shape_(std::move(shape)),
      rotations_(std::move(rotations)),
      position_(shape_.members()),
      boxes_(shape_.dimensions, task.bytes, task.element, by_lane(rotations_)) {
  assert(is_ring_op(task.op));
  for (std::uint32_t position = 0; position < shape_.members(); ++position) {
    position_[shape_.order[position]] = position;
  }
  std::uint32_t stride = 1;
  for (std::uint32_t d = 0; d < shape_.dimensions.size(); ++d) {
    stride_.push_back(stride);
    stride *= shape_.dimensions[d].size;
    scatter_rounds_ += rounds_along(d);
  }
  rounds_ = scatter_rounds_ * (all_reduces() ? 2 : 1);
}

std::uint32_t MultiAxis::rounds_along(std::uint32_t dimension) const {
  const std::uint32_t size = shape_.dimensions[dimension].size;
  return is_ring(dimension) ? size / 2 : size - 1;
}

// A gather is the mirror of a scatter: its last rounds are along the first dimension.
MultiAxis::Phase MultiAxis::phase(std::uint32_t lane, std::uint32_t round) const {
  const std::vector<std::uint32_t>& order = rotations_[lane / 2].order;
  const bool scatters = task_.op != CollectiveOp::kAllGather && round < scatter_rounds_;
  const auto last = static_cast<std::uint32_t>(order.size()) - 1;
  Phase at{.scatters = scatters,
           .step = round % scatter_rounds_,
           .first = round - round % scatter_rounds_};
  for (std::uint32_t i = 0; i <= last; ++i) {
    at.place = scatters ? i : last - i;
    at.dimension = order[at.place];
    const std::uint32_t rounds = rounds_along(at.dimension);
    if (at.step < rounds) break;
    at.step -= rounds;
    at.first += rounds;
  }
  return at;
}

std::optional<std::uint32_t> MultiAxis::neighbour(std::uint32_t position, std::uint32_t dimension,
                                                  bool back) const {
  const std::uint32_t size = shape_.dimensions[dimension].size;
  const std::uint32_t at = coordinate(position, dimension);
  if (at == (back ? 0 : size - 1)) {
    if (!is_ring(dimension)) return std::nullopt;
    const std::uint32_t round = (size - 1) * stride_[dimension];
    return back ? position + round : position - round;
  }
  return back ? position - stride_[dimension] : position + stride_[dimension];
}

std::optional<MultiAxis::Sent> MultiAxis::sent(std::uint32_t lane, std::uint32_t round,
                                               std::uint32_t position) const {
  const Phase now = phase(lane, round);
  const std::uint32_t d = now.dimension;
  const std::uint32_t n = shape_.dimensions[d].size;
  const std::uint32_t rounds = rounds_along(d);
  const auto to = neighbour(position, d, backwards(lane));
  if (!to) return std::nullopt;
  // Distance between this member and the one whose shard it is, behind or ahead of it.
  const std::uint32_t away = now.scatters ? rounds - now.step : now.step;
  const bool ahead = now.scatters != backwards(lane);  // towards higher coordinates
  const std::uint32_t here = coordinate(position, d);
  std::uint32_t block = ahead ? here + away : here + n - away;
  if (is_ring(d)) {
    block %= n;
  } else if (ahead ? block >= n : block < n) {
    return std::nullopt;
  } else if (!ahead) {
    block -= n;
  }
  Sent result{.to = *to, .reduce = now.scatters, .shards = {}};
  result.half = is_ring(d) && n % 2 == 0 && now.step == (now.scatters ? 0 : rounds - 1);
  // Along dimensions before this one in the order, the member has only its own coordinate.
  // Dimensions after it are whole: a scatter has not scattered them yet, and a gather has gathered
  // them.
  const std::vector<std::uint32_t>& order = rotations_[lane / 2].order;
  for (std::uint32_t place = 0; place < order.size(); ++place) {
    const std::uint32_t other = order[place];
    const bool own = place < now.place;
    result.shards.begin[other] = own ? coordinate(position, other) : 0;
    result.shards.count[other] = own ? 1 : shape_.dimensions[other].size;
  }
  result.shards.begin[d] = block;
  result.shards.count[d] = 1;
  return result;
}

std::optional<CollectiveMessage> MultiAxis::message(std::uint32_t lane, std::uint32_t round,
                                                    std::uint32_t member) const {
  const auto what = sent(lane, round, position_[member]);
  if (!what) return std::nullopt;
  Bytes bytes = boxes_.bytes(what->shards, lane);
  if (!what->half) bytes += boxes_.bytes(what->shards, lane ^ 1U);
  return CollectiveMessage{.to = shape_.order[what->to], .bytes = bytes, .reduce = what->reduce};
}

void MultiAxis::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                       std::vector<std::uint32_t>& out) const {
  const Sent what = *sent(lane, round, position_[member]);
  boxes_.append_blocks(what.shards, lane, out);
  if (!what.half) boxes_.append_blocks(what.shards, lane ^ 1U, out);
}

std::uint32_t MultiAxis::receives(std::uint32_t lane, std::uint32_t round,
                                  std::uint32_t member) const {
  const std::uint32_t d = phase(lane, round).dimension;
  const auto from = neighbour(position_[member], d, !backwards(lane));
  return from && sent(lane, round, *from) ? 1 : 0;
}

std::optional<LaneGate> MultiAxis::gate(std::uint32_t lane, std::uint32_t round,
                                        std::uint32_t) const {
  const std::uint32_t first = phase(lane, round).first;
  if (first == 0) return std::nullopt;
  return LaneGate{.lane = lane ^ 1U, .round = first - 1};
}

}  // namespace stepsim
