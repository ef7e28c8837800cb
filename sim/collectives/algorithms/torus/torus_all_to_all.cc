#include "sim/collectives/algorithms/torus/torus_all_to_all.h"

#include <utility>

#include "sim/collectives/parts.h"

namespace stepsim {
namespace {

// AxisView is one axis seen from a coordinate: how many pieces a lane carries from it, to it, or
// through it. A path that is shorter in one direction counts 2, for both choices t. A path of no
// hops or of half a round counts 1.
struct AxisView {
  std::uint32_t size;
  bool wraps;
  std::uint32_t ahead;   // coordinates before the end of a line, in the direction of the lane
  std::uint32_t behind;  // and back to its beginning

  std::int64_t from_here() const { return wraps ? size : 1 + 2 * std::int64_t{ahead}; }
  std::int64_t to_here() const { return wraps ? size : 1 + 2 * std::int64_t{behind}; }
  // Counts the pieces from `hop` places behind to any place ahead.
  std::int64_t through_here(std::uint32_t hop) const {
    if (!wraps) return hop > behind ? 0 : 2 * std::int64_t{ahead};
    return 2 * std::int64_t{size / 2 - hop} - (size % 2 == 0 ? 1 : 0);
  }
};

AxisView view(const GroupDimension& axis, std::uint32_t at, bool backwards) {
  const std::uint32_t after = axis.size - 1 - at;
  return {.size = axis.size,
          .wraps = axis.wraps,
          .ahead = backwards ? at : after,
          .behind = backwards ? after : at};
}

// AxisWay is a path along one axis: from, to, and whether both directions are equally short.
struct AxisWay {
  std::uint32_t from;
  std::uint32_t to;
  bool shared;
};

}  // namespace

TorusAllToAll::TorusAllToAll(const CollectiveTask& task, GroupShape shape)
    : task_(task), shape_(std::move(shape)), grid_(shape_.dimensions), position_(shape_.members()) {
  for (std::uint32_t position = 0; position < shape_.members(); ++position) {
    position_[shape_.order[position]] = position;
  }
  for (std::uint32_t axis = 0; axis < axes(); ++axis) rounds_ += hops_along(axis);
}

std::uint32_t TorusAllToAll::hops_along(std::uint32_t axis) const {
  const GroupDimension& dimension = shape_.dimensions[axis];
  return dimension.wraps ? dimension.size / 2 : dimension.size - 1;
}

TorusAllToAll::Hop TorusAllToAll::hop(std::uint32_t lane, std::uint32_t round) const {
  Hop result{.order = lane / directions(), .directions = lane % directions(), .number = round};
  while (result.number >= hops_along(axis_of(result, result.phase))) {
    result.number -= hops_along(axis_of(result, result.phase++));
  }
  return result;
}

std::int64_t TorusAllToAll::pieces_sent(const Hop& hop, std::uint32_t position) const {
  const TorusGrid::Coordinates at = grid_.coordinates(position);
  std::int64_t pieces = 1;
  for (std::uint32_t phase = 0; phase < axes(); ++phase) {
    const std::uint32_t axis = axis_of(hop, phase);
    const AxisView seen =
        view(shape_.dimensions[axis], at[axis], (hop.directions >> axis & 1) != 0);
    if (phase < hop.phase) {
      pieces *= seen.to_here();
    } else if (phase == hop.phase) {
      pieces *= seen.through_here(hop.number);
    } else {
      pieces *= seen.from_here();
    }
  }
  return pieces;
}

std::optional<CollectiveMessage> TorusAllToAll::message(std::uint32_t lane, std::uint32_t round,
                                                        std::uint32_t member) const {
  const Hop now = hop(lane, round);
  const std::uint32_t axis = axis_of(now, now.phase);
  const std::int64_t sent = pieces_sent(now, position_[member]);
  const auto to = grid_.neighbour(position_[member], axis, (now.directions >> axis & 1) != 0);
  if (sent == 0 || !to) return std::nullopt;
  const std::int64_t all = std::int64_t{members()} * lanes();
  return CollectiveMessage{.to = shape_.order[*to],
                           .bytes = Bytes(rounded_share(task_.bytes.value(), sent, all))};
}

std::uint32_t TorusAllToAll::receives(std::uint32_t lane, std::uint32_t round,
                                      std::uint32_t member) const {
  const Hop now = hop(lane, round);
  const std::uint32_t axis = axis_of(now, now.phase);
  const auto from = grid_.neighbour(position_[member], axis, (now.directions >> axis & 1) == 0);
  return from && pieces_sent(now, *from) > 0 ? 1 : 0;
}

void TorusAllToAll::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                           std::vector<std::uint32_t>& out) const {
  const Hop now = hop(lane, round);
  const TorusGrid::Coordinates at = grid_.coordinates(position_[member]);
  std::vector<std::vector<AxisWay>> ways(axes());  // by axis
  for (std::uint32_t phase = 0; phase < axes(); ++phase) {
    const std::uint32_t axis = axis_of(now, phase);
    const std::uint32_t size = shape_.dimensions[axis].size;
    const bool wraps = shape_.dimensions[axis].wraps;
    const bool backwards = (now.directions >> axis & 1) != 0;
    const std::uint32_t here = backwards ? size - 1 - at[axis] : at[axis];  // along the lane
    const std::uint32_t farthest = wraps ? size / 2 : size - 1;
    for (std::uint32_t from = 0; from < size; ++from) {
      for (std::uint32_t distance = 0; distance <= farthest; ++distance) {
        if (!wraps && from + distance >= size) continue;
        const std::uint32_t to = (from + distance) % size;
        bool carried = false;
        if (phase < now.phase) carried = to == here;
        if (phase == now.phase) {
          carried = (from + now.number) % size == here && distance > now.number &&
                    (wraps || from + now.number < size);
        }
        if (phase > now.phase) carried = from == here;
        if (!carried) continue;
        const bool half_round = wraps && size % 2 == 0 && distance == size / 2;
        ways[axis].push_back({.from = backwards ? size - 1 - from : from,
                              .to = backwards ? size - 1 - to : to,
                              .shared = distance == 0 || half_round});
      }
    }
  }
  std::uint32_t combinations = 1;
  for (const auto& of_axis : ways) combinations *= static_cast<std::uint32_t>(of_axis.size());
  for (std::uint32_t combination = 0; combination < combinations; ++combination) {
    std::uint32_t rest = combination;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t stride = 1;
    std::uint32_t shared = 0;  // axes shared, as bits
    for (std::uint32_t axis = 0; axis < axes(); ++axis) {
      const auto count = static_cast<std::uint32_t>(ways[axis].size());
      const AxisWay& way = ways[axis][rest % count];
      rest /= count;
      from += way.from * stride;
      to += way.to * stride;
      stride *= shape_.dimensions[axis].size;
      if (way.shared) shared |= 1U << axis;
    }
    const std::uint32_t shard = shape_.order[from] * members() + shape_.order[to];
    for (std::uint32_t choice = 0; choice < directions(); ++choice) {
      if (((choice ^ now.directions) & shared) != 0) continue;
      out.push_back((now.order * directions() + choice) * shards() + shard);
    }
  }
}

}  // namespace stepsim
