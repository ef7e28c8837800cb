#include "topology/kinds/torus.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "topology/kinds/spec_checks.h"

namespace stepsim {
namespace {

constexpr std::array<const char*, 3> kAxisNames = {"x", "y", "z"};
constexpr std::int64_t kMaximumChips = 1 << 20;
constexpr int kShortestRing = 3;

struct Axis {
  std::uint32_t size = 1;
  std::uint32_t stride = 1;  // chip numbers of neighbours on this axis differ by this
  bool wraps = false;
};

std::vector<Axis> axes_of(const TorusSpec& spec) {
  std::vector<Axis> axes;
  std::uint32_t stride = 1;
  for (const TorusAxis& axis : spec.axes) {
    const auto size = static_cast<std::uint32_t>(axis.size);
    axes.push_back({.size = size, .stride = stride, .wraps = axis.wraps});
    stride *= size;
  }
  return axes;
}

std::uint32_t position(std::uint32_t chip, const Axis& axis) {
  return chip / axis.stride % axis.size;
}

// Returns the next chip in the plus direction, round the ring at its end.
std::uint32_t next(std::uint32_t chip, const Axis& axis) {
  const bool last = position(chip, axis) + 1 == axis.size;
  return last ? chip - (axis.size - 1) * axis.stride : chip + axis.stride;
}

std::uint32_t previous(std::uint32_t chip, const Axis& axis) {
  const bool first = position(chip, axis) == 0;
  return first ? chip + (axis.size - 1) * axis.stride : chip - axis.stride;
}

// The two directions of the cable from a chip to the next one on an axis.
struct Cable {
  LinkId plus;
  LinkId minus;
};

class TorusRouter : public Router {
 public:
  // Indexed [chip * axes + axis]. Entries of chips without a next chip are never read.
  TorusRouter(std::vector<Axis> axes, std::vector<Cable> cables)
      : axes_(std::move(axes)), cables_(std::move(cables)) {}

  void route(NodeId from, NodeId to, std::uint64_t /*flow_key*/,
             std::vector<LinkId>& out) const override {
    std::uint32_t chip = from.index();
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      const Axis& axis = axes_[a];
      const std::uint32_t here = position(chip, axis);
      const std::uint32_t there = position(to.index(), axis);
      const std::uint32_t ahead = there >= here ? there - here : axis.size - here + there;
      const bool plus = axis.wraps ? ahead <= axis.size - ahead : there >= here;
      if (plus) {
        for (std::uint32_t hop = 0; hop < ahead; ++hop) {
          out.push_back(cable(chip, a).plus);
          chip = next(chip, axis);
        }
      } else {
        for (std::uint32_t hop = 0; hop < axis.size - ahead; ++hop) {
          chip = previous(chip, axis);
          out.push_back(cable(chip, a).minus);
        }
      }
    }
  }

 private:
  const Cable& cable(std::uint32_t chip, std::size_t axis) const {
    return cables_[chip * axes_.size() + axis];
  }

  std::vector<Axis> axes_;
  std::vector<Cable> cables_;
};

std::string chip_name(std::uint32_t chip, const std::vector<Axis>& axes) {
  std::string name = "chip";
  for (std::size_t a = 0; a < axes.size(); ++a) {
    name += (a == 0 ? "" : ".") + std::to_string(position(chip, axes[a]));
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
  BuiltTopology built;
  const std::vector<Axis> axes = axes_of(spec);
  const std::uint32_t chips = axes.back().stride * axes.back().size;
  for (std::uint32_t chip = 0; chip < chips; ++chip) {
    built.places.chips.push_back(built.fabric.add(NodeKind::kChip, chip_name(chip, axes)));
  }
  std::vector<Cable> cables(chips * axes.size());
  for (std::uint32_t chip = 0; chip < chips; ++chip) {
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const bool last = position(chip, axes[a]) + 1 == axes[a].size;
      if (last && !axes[a].wraps) continue;
      const NodeId neighbour(next(chip, axes[a]));
      const LinkId plus = built.fabric.connect_one_way(NodeId(chip), neighbour, spec.link_bandwidth,
                                                       spec.link_latency);
      const LinkId minus = built.fabric.connect_one_way(neighbour, NodeId(chip),
                                                        spec.link_bandwidth, spec.link_latency);
      cables[chip * axes.size() + a] = {.plus = plus, .minus = minus};
    }
  }
  for (std::size_t a = 0; a < axes.size(); ++a) {
    built.places.levels.push_back({.name = kAxisNames[a],
                                   .size = axes[a].size,
                                   .kind = LevelKind::kTorusAxis,
                                   .members = LevelMembers::kChip,
                                   .wraps = axes[a].wraps});
  }
  built.router = std::make_unique<TorusRouter>(axes, std::move(cables));
  return built;
}

}  // namespace stepsim
