#include "sim/collectives/algorithms/torus/torus_grid.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace stepsim {

TorusGrid::TorusGrid(std::vector<GroupDimension> axes) : axes_(std::move(axes)) {
  assert(axes_.size() <= kMaxDimensions);
  std::uint32_t stride = 1;
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    stride_[axis] = stride;
    stride *= axes_[axis].size;
  }
}

TorusGrid::Coordinates TorusGrid::coordinates(std::uint32_t position) const {
  Coordinates at{};
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    at[axis] = position / stride_[axis] % axes_[axis].size;
  }
  return at;
}

std::optional<std::uint32_t> TorusGrid::neighbour(std::uint32_t position, std::uint32_t axis,
                                                  bool backwards) const {
  const GroupDimension& along = axes_[axis];
  const std::uint32_t at = position / stride_[axis] % along.size;
  const std::uint32_t last = along.size - 1;
  if (at != (backwards ? 0 : last)) {
    return backwards ? position - stride_[axis] : position + stride_[axis];
  }
  if (!along.wraps && !along.twists) return std::nullopt;
  const std::uint32_t around =
      backwards ? position + last * stride_[axis] : position - last * stride_[axis];
  return along.twists ? half_a_round_on(around) : around;
}

std::vector<std::uint32_t> TorusGrid::neighbours(std::uint32_t position) const {
  std::vector<std::uint32_t> all;
  for (std::uint32_t axis = 0; axis < axes(); ++axis) {
    for (const bool backwards : {false, true}) {
      const auto next = neighbour(position, axis, backwards);
      if (next && std::ranges::find(all, *next) == all.end()) all.push_back(*next);
    }
  }
  return all;
}

std::uint32_t TorusGrid::half_a_round_on(std::uint32_t position) const {
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    if (!axes_[axis].wraps) continue;
    const std::uint32_t half = axes_[axis].size / 2;
    const bool ahead = position / stride_[axis] % axes_[axis].size < half;
    position = ahead ? position + half * stride_[axis] : position - half * stride_[axis];
  }
  return position;
}

}  // namespace stepsim
