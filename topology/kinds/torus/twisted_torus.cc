#include "topology/kinds/torus/twisted_torus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "topology/kinds/spec_checks.h"

namespace stepsim {
namespace {

constexpr std::size_t kAxes = 3;
constexpr std::array<const char*, kAxes> kTwistedAxisNames = {"x", "y", "z"};
constexpr int kShortestSide = 2;
constexpr int kLongestSide = 64;  // 2^20 chips: 64 * 128 * 128

using Vector = std::array<int, kAxes>;  // a position, or hops on each axis

class Grid {
 public:
  explicit Grid(const std::vector<int>& shape) : side_(std::ranges::min(shape)) {
    std::ranges::copy(shape, shape_.begin());
  }

  int side() const { return side_; }  // K
  int size(std::size_t axis) const { return shape_[axis]; }
  bool is_short(std::size_t axis) const { return shape_[axis] == side_; }
  std::uint32_t chips() const {
    return static_cast<std::uint32_t>(shape_[0] * shape_[1] * shape_[2]);
  }

  Vector position(std::uint32_t chip) const {
    const int number = static_cast<int>(chip);
    return {number % shape_[0], number / shape_[0] % shape_[1], number / (shape_[0] * shape_[1])};
  }
  std::uint32_t chip(const Vector& at) const {
    return static_cast<std::uint32_t>(at[0] + shape_[0] * (at[1] + shape_[1] * at[2]));
  }

  // Returns the position after one hop along `axis`, plus or minus.
  Vector step(Vector at, std::size_t axis, int direction) const {
    at[axis] += direction;
    if (at[axis] >= 0 && at[axis] < shape_[axis]) return at;
    at[axis] = at[axis] < 0 ? shape_[axis] - 1 : 0;
    if (!is_short(axis)) return at;
    for (std::size_t other = 0; other < kAxes; ++other) {
      if (!is_short(other)) at[other] = (at[other] + side_) % shape_[other];
    }
    return at;
  }

 private:
  Vector shape_{};
  int side_;
};

int hops_of(const Vector& hops) {
  return std::abs(hops[0]) + std::abs(hops[1]) + std::abs(hops[2]);
}

// Returns the hops from one position to another if the route goes round the short axes `wraps`
// times (-1, 0 or 1, by axis; 0 for long ones).
Vector hops_with(const Grid& grid, const Vector& from, const Vector& to, const Vector& wraps) {
  const int shift = grid.side() * (wraps[0] + wraps[1] + wraps[2]);
  Vector hops{};
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    const int apart = to[axis] - from[axis];
    if (grid.is_short(axis)) {
      hops[axis] = apart + wraps[axis] * grid.side();
      continue;
    }
    // Takes the value in (-K, K] among all that are equal modulo the size. The twist adds `shift`
    // itself.
    const int size = grid.size(axis);
    const int ahead = ((apart - shift) % size + size) % size;
    hops[axis] = ahead <= grid.side() ? ahead : ahead - size;
  }
  return hops;
}

Vector shortest_hops(const Grid& grid, const Vector& from, const Vector& to) {
  const auto choices = [&grid](std::size_t axis) {
    return grid.is_short(axis) ? std::vector<int>{-1, 0, 1} : std::vector<int>{0};
  };
  std::optional<Vector> best;
  for (const int x : choices(0)) {
    for (const int y : choices(1)) {
      for (const int z : choices(2)) {
        const Vector hops = hops_with(grid, from, to, {x, y, z});
        const int shorter = best ? hops_of(*best) - hops_of(hops) : 1;
        if (shorter > 0 || (shorter == 0 && hops > *best)) best = hops;
      }
    }
  }
  return *best;
}

// The two directions of the cable from a chip to the next one on an axis.
struct TwistedCable {
  LinkId plus;
  LinkId minus;
};

class TwistedRouter : public Router {
 public:
  TwistedRouter(const Grid& grid, std::vector<TwistedCable> cables)
      : grid_(grid), cables_(std::move(cables)) {}

  void route(NodeId from, NodeId to, std::uint64_t /*flow_key*/,
             std::vector<LinkId>& out) const override {
    Vector at = grid_.position(from.index());
    const Vector hops = shortest_hops(grid_, at, grid_.position(to.index()));
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      for (int hop = 0; hop < hops[axis]; ++hop) {
        out.push_back(cables_[grid_.chip(at) * kAxes + axis].plus);
        at = grid_.step(at, axis, 1);
      }
      for (int hop = 0; hop > hops[axis]; --hop) {
        at = grid_.step(at, axis, -1);
        out.push_back(cables_[grid_.chip(at) * kAxes + axis].minus);
      }
    }
  }

 private:
  Grid grid_;
  std::vector<TwistedCable> cables_;  // indexed [chip * kAxes + axis]
};

}  // namespace

std::vector<Problem> check(const TwistedTorusSpec& spec) {
  SpecChecks checks(twisted_torus_fields(), spec);
  bool fits = spec.shape.size() == kAxes;
  if (fits) {
    const int side = std::ranges::min(spec.shape);
    const auto shorts = std::ranges::count(spec.shape, side);
    fits = side >= kShortestSide && side <= kLongestSide && shorts < 3 &&
           shorts + std::ranges::count(spec.shape, 2 * side) == 3;
  }
  if (!fits) {
    checks.add("shape", fmt::format("must be K x K x 2K or K x 2K x 2K in any order, K from {} to "
                                    "{}, is {}",
                                    kShortestSide, kLongestSide, fmt::join(spec.shape, "x")));
  }
  return checks.problems();
}

BuiltTopology build(const TwistedTorusSpec& spec) {
  assert(check(spec).empty());
  BuiltTopology built;
  const Grid grid(spec.shape);
  for (std::uint32_t chip = 0; chip < grid.chips(); ++chip) {
    built.places.chips.push_back(built.fabric.add(
        NodeKind::kChip, fmt::format("chip{}", fmt::join(grid.position(chip), "."))));
  }
  std::vector<TwistedCable> cables;
  for (std::uint32_t chip = 0; chip < grid.chips(); ++chip) {
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      const NodeId next(grid.chip(grid.step(grid.position(chip), axis, 1)));
      const LinkId plus =
          built.fabric.connect(NodeId(chip), next, spec.link_bandwidth, spec.link_latency);
      cables.push_back({.plus = plus, .minus = LinkId(plus.index() + 1)});
    }
  }
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    built.places.levels.push_back({.name = kTwistedAxisNames[axis],
                                   .size = static_cast<std::uint32_t>(grid.size(axis)),
                                   .kind = LevelKind::kTorusAxis,
                                   .members = LevelMembers::kChip,
                                   .wraps = !grid.is_short(axis),
                                   .twists = grid.is_short(axis)});
  }
  built.router = std::make_unique<TwistedRouter>(grid, std::move(cables));
  return built;
}

}  // namespace stepsim
