#include "sim/collectives/choose_algorithm.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/collectives/axis_rings.h"

namespace stepsim {
namespace {

// The same members in one dimension.
GroupShape flattened(const GroupShape& shape) {
  if (shape.dimensions.size() == 1) return shape;
  return {.dimensions = {{.size = shape.members()}}, .order = shape.order};
}

std::vector<std::uint32_t> innermost_first(const GroupShape& shape) {
  std::vector<std::uint32_t> order(shape.dimensions.size());
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

// Every rotation of the axis order; both directions, unless an axis is a line: there the way back
// of one direction already uses the links of the other.
std::vector<AxisRingLane> rotated_lanes(const GroupShape& shape) {
  const bool both =
      std::ranges::all_of(shape.dimensions, [](const GroupDimension& axis) { return axis.wraps; });
  std::vector<AxisRingLane> lanes;
  std::vector<std::uint32_t> order = innermost_first(shape);
  for (std::size_t rotation = 0; rotation < order.size(); ++rotation) {
    lanes.push_back({order, false});
    if (both) lanes.push_back({order, true});
    std::rotate(order.begin(), order.begin() + 1, order.end());
  }
  return lanes;
}

}  // namespace

AlgorithmChoice resolve(AlgorithmChoice choice, const GroupShape& shape) {
  if (choice != AlgorithmChoice::kAuto) return choice;
  const bool torus = std::ranges::all_of(
      shape.dimensions, [](const GroupDimension& dimension) { return dimension.torus_axis; });
  if (shape.dimensions.size() > 1) {
    return torus ? AlgorithmChoice::kMultiAxis : AlgorithmChoice::kHierarchical;
  }
  return torus && shape.dimensions.front().wraps ? AlgorithmChoice::kBidirectionalRing
                                                 : AlgorithmChoice::kRing;
}

std::unique_ptr<CollectiveAlgorithm> choose_algorithm(CollectiveOp op, AlgorithmChoice choice,
                                                      const GroupShape& shape, Bytes bytes,
                                                      Bytes element) {
  auto rings = [&](GroupShape over, std::vector<AxisRingLane> lanes) {
    return std::make_unique<AxisRings>(op, std::move(over), std::move(lanes), bytes, element);
  };
  switch (resolve(choice, shape)) {
    case AlgorithmChoice::kBidirectionalRing:
      return rings(flattened(shape), {{{0}, false}, {{0}, true}});
    case AlgorithmChoice::kHierarchical:
      return rings(shape, {{innermost_first(shape), false}});
    case AlgorithmChoice::kMultiAxis:
      return rings(shape, rotated_lanes(shape));
    case AlgorithmChoice::kAuto:
    case AlgorithmChoice::kRing:
      break;
  }
  return rings(flattened(shape), {{{0}, false}});
}

}  // namespace stepsim
