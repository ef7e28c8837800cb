#include "sim/collectives/algorithms/rotation_shares.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace stepsim {
namespace {

constexpr double kAll = 240;            // unit of shares: an axis is at most 1 % too busy
constexpr int kMostImprovements = 500;  // each balances the axes by 5 % or more

// Returns the seconds on the busiest link of a line, per second that all bytes would take.
double busy(CollectiveOp op, const GroupDimension& line) {
  return op == CollectiveOp::kAllReduce ? 1 : (line.size - 1.0) / line.size;
}

std::vector<double> loads_of(CollectiveOp op, std::span<const GroupDimension> axes,
                             const std::vector<double>& shares) {
  std::vector<double> loads(axes.size(), 0.0);
  for (std::size_t rotation = 0; rotation < axes.size(); ++rotation) {
    double left = shares[rotation];
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::size_t axis = (rotation + i) % axes.size();
      loads[axis] += left * busy(op, axes[axis]);
      left /= axes[axis].size;
    }
  }
  return loads;
}

// Returns whole parts that add up to kAll.
std::vector<std::uint32_t> in_whole_parts(const std::vector<double>& shares) {
  std::vector<std::uint32_t> parts;
  double below = 0;
  double end = 0;
  for (const double share : shares) {
    end += share * kAll;
    parts.push_back(static_cast<std::uint32_t>(std::lround(end) - std::lround(below)));
    below = end;
  }
  return parts;
}

}  // namespace

std::vector<std::uint32_t> rotation_shares(CollectiveOp op, std::span<const GroupDimension> axes) {
  assert(!axes.empty() && is_ring_op(op));
  const bool alike = std::ranges::all_of(
      axes, [&](const GroupDimension& axis) { return axis.size == axes.front().size; });
  if (alike || std::ranges::any_of(axes, &GroupDimension::wraps)) {
    return std::vector<std::uint32_t>(axes.size(), 1);
  }
  std::vector<double> shares(axes.size(), 1.0 / static_cast<double>(axes.size()));
  for (int i = 0; i < kMostImprovements; ++i) {
    const std::vector<double> loads = loads_of(op, axes, shares);
    for (std::size_t rotation = 0; rotation < axes.size(); ++rotation) {
      shares[rotation] /= loads[rotation];
    }
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (double& share : shares) share /= sum;
  }
  return in_whole_parts(shares);
}

}  // namespace stepsim
