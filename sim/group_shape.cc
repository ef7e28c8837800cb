#include "sim/group_shape.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/collectives/algorithm.h"

namespace stepsim {
namespace {

GroupShape in_given_order(std::size_t members) {
  GroupShape shape;
  shape.order.resize(members);
  std::iota(shape.order.begin(), shape.order.end(), 0U);
  if (members > 1) shape.dimensions = {{.size = static_cast<std::uint32_t>(members)}};
  return shape;
}

}  // namespace

GroupShape describe(const Cluster& cluster, std::span<const std::uint32_t> chips) {
  const std::vector<Level>& levels = cluster.places.levels;
  GroupShape shape;
  std::vector<std::uint32_t> position(chips.size(), 0);
  std::uint32_t box = 1;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    std::vector<std::uint32_t> coordinate(chips.size());
    std::ranges::transform(chips, coordinate.begin(), [&](std::uint32_t chip) {
      return cluster.places.coordinate(chip, level);
    });
    const auto [low, high] = std::ranges::minmax(coordinate);
    const std::uint32_t size = high - low + 1;
    if (size == 1) continue;
    for (std::size_t i = 0; i < chips.size(); ++i) position[i] += (coordinate[i] - low) * box;
    const bool axis = levels[level].kind == LevelKind::kTorusAxis;
    shape.dimensions.push_back(
        {.size = size,
         .torus_axis = axis,
         .wraps = axis && levels[level].wraps && size == levels[level].size});
    if (size > chips.size()) return in_given_order(chips.size());
    box *= size;
    if (box > chips.size()) return in_given_order(chips.size());
  }
  if (box != chips.size() || shape.dimensions.size() > kMaxDimensions) {
    return in_given_order(chips.size());
  }
  shape.order.assign(chips.size(), 0);
  std::vector<bool> taken(chips.size(), false);
  for (std::uint32_t member = 0; member < chips.size(); ++member) {
    if (taken[position[member]]) return in_given_order(chips.size());
    taken[position[member]] = true;
    shape.order[position[member]] = member;
  }
  return shape;
}

}  // namespace stepsim
