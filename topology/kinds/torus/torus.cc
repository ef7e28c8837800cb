#include "topology/kinds/torus/torus.h"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <cstdint>
#include <string>
#include <utility>

#include "topology/graph/grid_router.h"
#include "topology/kinds/spec_checks.h"

namespace stepsim {
namespace {

constexpr std::array<const char*, 3> kAxisNames = {"x", "y", "z"};
constexpr std::int64_t kMaximumChips = 1 << 20;
constexpr int kShortestRing = 3;

std::string chip_name(std::uint32_t chip, const TorusSpec& spec) {
  std::string name = "chip";
  for (std::size_t a = 0; a < spec.axes.size(); ++a) {
    const auto size = static_cast<std::uint32_t>(spec.axes[a].size);
    name += (a == 0 ? "" : ".") + std::to_string(chip % size);
    chip /= size;
  }
  return name;
}

std::vector<Problem> check_axes(const std::vector<TorusAxis>& axes) {
  std::vector<Problem> problems;
  if (axes.empty() || axes.size() > kAxisNames.size()) {
    problems.push_back({"axes", fmt::format("must be 1 to 3 (x, y, z), are {}", axes.size())});
  }
  std::int64_t chips = 1;
  std::string sizes;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const TorusAxis& axis = axes[a];
    if (axis.wraps && axis.size >= 1 && axis.size < kShortestRing) {
      problems.push_back({fmt::format("axes[{}].wraps", a),
                          fmt::format("needs an axis of at least {} chips (two chips have one "
                                      "cable between them), size is {}",
                                      kShortestRing, axis.size)});
    }
    sizes += (a == 0 ? "" : "x") + std::to_string(axis.size);
    // Stops at the first product above the limit, so it never overflows.
    if (axis.size > 1 && chips <= kMaximumChips) chips *= axis.size;
  }
  if (chips > kMaximumChips) {
    problems.push_back(
        {"axes", fmt::format("must hold at most {} chips, are {}", kMaximumChips, sizes)});
  }
  return problems;
}

}  // namespace

std::vector<Problem> check(const TorusSpec& spec) {
  SpecChecks checks(torus_fields(), spec);
  checks.add(check_axes(spec.axes));
  return checks.problems();
}

BuiltTopology build(const TorusSpec& spec) {
  assert(check(spec).empty());
  BuiltTopology built;
  std::vector<GridAxis> axes;
  std::uint32_t chips = 1;
  for (const TorusAxis& axis : spec.axes) {
    axes.push_back({.size = static_cast<std::uint32_t>(axis.size), .wraps = axis.wraps});
    chips *= axes.back().size;
  }
  for (std::uint32_t chip = 0; chip < chips; ++chip) {
    built.places.chips.push_back(built.fabric.add(NodeKind::kChip, chip_name(chip, spec)));
  }
  std::vector<GridCable> cables(chips * axes.size());
  for (std::uint32_t chip = 0; chip < chips; ++chip) {
    std::uint32_t stride = 1;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const bool last = chip / stride % axes[a].size + 1 == axes[a].size;
      if (!last || axes[a].wraps) {
        const NodeId neighbour(next_place(chip, axes[a].size, stride));
        const LinkId plus =
            built.fabric.connect(NodeId(chip), neighbour, spec.link_bandwidth, spec.link_latency);
        cables[chip * axes.size() + a] = {.plus = plus, .minus = LinkId(plus.index() + 1)};
      }
      stride *= axes[a].size;
    }
  }
  for (std::size_t a = 0; a < axes.size(); ++a) {
    built.places.levels.push_back({.name = kAxisNames[a],
                                   .size = axes[a].size,
                                   .kind = LevelKind::kTorusAxis,
                                   .members = LevelMembers::kChip,
                                   .wraps = axes[a].wraps});
  }
  built.router = std::make_unique<GridRouter>(axes, std::move(cables));
  return built;
}

}  // namespace stepsim
