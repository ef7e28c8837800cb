#include "topology/kinds/torus/tpu_slice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "topology/kinds/spec_checks.h"
#include "topology/kinds/torus/torus.h"
#include "topology/kinds/torus/twisted_torus.h"

namespace stepsim {
namespace {

using Shape = std::vector<int>;

constexpr int kCubeSide = 4;
constexpr int kMostV4Chips = 4096;

struct Generation {
  TpuGeneration generation;
  std::string_view name;
  std::size_t axes;
  double link_bandwidth;  // bytes/s
  double host_bandwidth;
  int ring;  // 2D: number of chips of an axis that wraps; 3D: 0
  Shape host;
  std::string_view wrap_rule;
};

const Generation& facts_of(TpuGeneration generation) {
  constexpr std::string_view kCubes =
      "all axes wrap if the slice is made of whole cubes of 4x4x4, else none";
  static const std::array<Generation, 5> kAll = {{
      {TpuGeneration::kV3, "v3", 2, 100e9, 15e9, 32, {4, 2}, "an axis wraps if it has 32 chips"},
      {TpuGeneration::kV4, "v4", 3, 45e9, 16e9, 0, {2, 2, 1}, kCubes},
      {TpuGeneration::kV5e, "v5e", 2, 45e9, 15e9, 16, {4, 2}, "an axis wraps if it has 16 chips"},
      {TpuGeneration::kV5p, "v5p", 3, 90e9, 15e9, 0, {2, 2, 1}, kCubes},
      {TpuGeneration::kV6e, "v6e", 2, 90e9, 32e9, 16, {4, 2}, "an axis wraps if it has 16 chips"},
  }};
  return *std::ranges::find(kAll, generation, &Generation::generation);
}

std::string text_of(const Shape& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

std::int64_t chips_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// Returns the shapes made of whole cubes, axes ascending.
std::vector<Shape> cuboids(TpuGeneration generation) {
  const bool is_v4 = generation == TpuGeneration::kV4;
  const Shape pod = is_v4 ? Shape(3, kMostV4Chips) : Shape{16, 20, 28};
  std::vector<Shape> shapes;
  for (int x = kCubeSide; x <= pod[0] && (!is_v4 || x * x * x <= kMostV4Chips); x += kCubeSide) {
    for (int y = x; y <= pod[1] && (!is_v4 || x * y * y <= kMostV4Chips); y += kCubeSide) {
      for (int z = y; z <= pod[2] && (!is_v4 || x * y * z <= kMostV4Chips); z += kCubeSide) {
        shapes.push_back({x, y, z});
      }
    }
  }
  return shapes;
}

// Returns every allowed shape, axes ascending.
std::vector<Shape> shapes_of(TpuGeneration generation) {
  if (facts_of(generation).axes == 3) {
    std::vector<Shape> shapes = {{1, 1, 1}, {1, 2, 2}, {2, 2, 2}, {2, 2, 4}, {2, 4, 4}};
    const std::vector<Shape> larger = cuboids(generation);
    shapes.insert(shapes.end(), larger.begin(), larger.end());
    return shapes;
  }
  std::vector<Shape> shapes = {{1, 1}, {2, 2}, {2, 4}, {4, 4}, {4, 8}, {8, 8}, {8, 16}, {16, 16}};
  if (generation == TpuGeneration::kV3) {
    shapes.push_back({16, 32});
    shapes.push_back({32, 32});
  }
  return shapes;
}

bool is_within(const Shape& inner, const Shape& outer) {
  return std::ranges::equal(inner, outer, std::less_equal<>());
}

// Returns the largest shape that fits inside and the smallest that contains it. A shape that is too
// long on one axis and too short on another has neither.
std::string nearest_text(TpuGeneration generation, const Shape& shape) {
  std::optional<Shape> inside;
  std::optional<Shape> around;
  for (Shape turned : shapes_of(generation)) {
    do {
      if (is_within(turned, shape) && (!inside || chips_of(turned) > chips_of(*inside))) {
        inside = turned;
      }
      if (is_within(shape, turned) && (!around || chips_of(turned) < chips_of(*around))) {
        around = turned;
      }
    } while (std::ranges::next_permutation(turned).found);
  }
  if (inside && around) {
    return fmt::format("the nearest are {} and {}", text_of(*inside), text_of(*around));
  }
  if (inside || around) return "the nearest is " + text_of(inside ? *inside : *around);
  const std::vector<Shape> shapes = shapes_of(generation);
  const auto largest =
      std::ranges::max_element(shapes, {}, [](const Shape& one) { return chips_of(one); });
  return "the largest is " + text_of(*largest);
}

void check_shape(const TpuSliceSpec& spec, SpecChecks& checks) {
  const Generation& facts = facts_of(spec.generation);
  if (spec.shape.size() != facts.axes) {
    checks.add("shape", fmt::format("must have {} axes on {}, is {}", facts.axes, facts.name,
                                    spec.shape.empty() ? "empty" : text_of(spec.shape)));
    return;
  }
  Shape sorted = spec.shape;
  std::ranges::sort(sorted);
  if (std::ranges::count(shapes_of(spec.generation), sorted) > 0) return;
  checks.add("shape", fmt::format("{} has no slice of {}; {}", facts.name, text_of(spec.shape),
                                  nearest_text(spec.generation, spec.shape)));
}

bool is_whole_cubes(const Shape& shape) {
  return shape.size() == 3 &&
         std::ranges::all_of(shape, [](int size) { return size > 0 && size % kCubeSide == 0; });
}

TwistedTorusSpec twisted_torus_of(const TpuSliceSpec& spec) {
  return {.shape = spec.shape,
          .link_bandwidth = spec.link_bandwidth.value_or(link_bandwidth_of(spec.generation)),
          .link_latency = spec.link_latency};
}

// REQUIRES: the shape is valid.
void check_wiring(const TpuSliceSpec& spec, SpecChecks& checks) {
  const Generation& facts = facts_of(spec.generation);
  if (spec.twisted && facts.axes != 3) {
    checks.add("twisted", fmt::format("{} has no twisted slices, v4 and v5p have", facts.name));
  } else if (spec.twisted &&
             !(is_whole_cubes(spec.shape) && check(twisted_torus_of(spec)).empty())) {
    checks.add("twisted", fmt::format("needs whole cubes as K x K x 2K or K x 2K x 2K, such as "
                                      "4x4x8, 4x8x8 or 8x8x16; is {}",
                                      text_of(spec.shape)));
  }
  if (!spec.wraps) return;
  if (spec.wraps->size() != spec.shape.size()) {
    checks.add("wraps", fmt::format("must say it for {} axes, does for {}", spec.shape.size(),
                                    spec.wraps->size()));
    return;
  }
  const std::vector<bool> actual = wraps_of(spec.generation, spec.shape);
  for (std::size_t axis = 0; axis < actual.size(); ++axis) {
    if (actual[axis] == (*spec.wraps)[axis]) continue;
    checks.add(fmt::format("wraps[{}]", axis),
               fmt::format("an axis of {} in a {} slice of {} {}; {}", spec.shape[axis], facts.name,
                           text_of(spec.shape), actual[axis] ? "wraps" : "does not wrap",
                           facts.wrap_rule));
  }
}

// Returns the position of a chip by number, x fastest.
Shape position(std::uint32_t chip, const Shape& shape) {
  Shape at;
  for (const int size : shape) {
    at.push_back(static_cast<int>(chip) % size);
    chip /= static_cast<std::uint32_t>(size);
  }
  return at;
}

// Neighbouring chips of one cube have an electrical cable.
bool is_optical(const Shape& from, const Shape& to) {
  int apart = 0;
  bool leaves = false;
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    apart += std::abs(from[axis] - to[axis]);
    leaves = leaves || from[axis] / kCubeSide != to[axis] / kCubeSide;
  }
  return leaves || apart > 1;
}

Fabric with_optical_latency(const Fabric& fabric, const Shape& shape, Duration latency) {
  Fabric changed;
  for (const Node& node : fabric.nodes()) changed.add(node.kind, node.name);
  for (const Link& link : fabric.links()) {
    const bool optical =
        is_optical(position(link.from.index(), shape), position(link.to.index(), shape));
    changed.connect_one_way(link.from, link.to, link.bandwidth, optical ? latency : link.latency);
  }
  return changed;
}

// Returns how many hosts stand along each axis.
Shape hosts_along(const Shape& shape, const Shape& box) {
  Shape hosts;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    hosts.push_back((shape[axis] + box[axis] - 1) / box[axis]);
  }
  return hosts;
}

// Returns the host's box, turned so that the slice needs the fewest hosts.
Shape turned_to_fit(const Shape& shape, Shape box) {
  Shape best = box;
  std::ranges::sort(box);
  do {
    if (chips_of(hosts_along(shape, box)) < chips_of(hosts_along(shape, best))) best = box;
  } while (std::ranges::next_permutation(box).found);
  return best;
}

void add_hosts(const TpuSliceSpec& spec, BuiltTopology& built) {
  const Shape box = turned_to_fit(spec.shape, facts_of(spec.generation).host);
  const Shape along = hosts_along(spec.shape, box);
  std::vector<NodeId> hosts;
  for (std::uint32_t host = 0; host < chips_of(along); ++host) {
    hosts.push_back(built.fabric.add(NodeKind::kHost,
                                     fmt::format("host{}", fmt::join(position(host, along), "."))));
  }
  const Bandwidth bandwidth = spec.hosts->bandwidth.value_or(host_bandwidth_of(spec.generation));
  for (const NodeId chip : built.places.chips) {
    const Shape at = position(chip.index(), spec.shape);
    int host = 0;
    for (std::size_t axis = at.size(); axis-- > 0;) {
      host = host * along[axis] + at[axis] / box[axis];
    }
    built.fabric.connect(chip, hosts[static_cast<std::size_t>(host)], bandwidth,
                         spec.hosts->latency);
  }
}

}  // namespace

std::string_view name_of(TpuGeneration generation) {
  return facts_of(generation).name;
}

std::optional<TpuGeneration> tpu_generation_named(std::string_view name) {
  const auto found = std::ranges::find(
      kTpuGenerations, name, [](TpuGeneration generation) { return name_of(generation); });
  if (found == kTpuGenerations.end()) return std::nullopt;
  return *found;
}

Bandwidth link_bandwidth_of(TpuGeneration generation) {
  return Bandwidth(facts_of(generation).link_bandwidth);
}

Bandwidth host_bandwidth_of(TpuGeneration generation) {
  return Bandwidth(facts_of(generation).host_bandwidth);
}

std::vector<bool> wraps_of(TpuGeneration generation, const std::vector<int>& shape) {
  const Generation& facts = facts_of(generation);
  std::vector<bool> wraps;
  for (const int size : shape) {
    wraps.push_back(facts.ring > 0 ? size == facts.ring : is_whole_cubes(shape));
  }
  return wraps;
}

std::vector<Problem> check(const TpuSliceSpec& spec) {
  SpecChecks checks(tpu_slice_fields(), spec);
  SpecChecks of_shape;
  check_shape(spec, of_shape);
  if (of_shape.found_none()) check_wiring(spec, of_shape);
  checks.add(of_shape.problems());
  if (spec.optical_latency && facts_of(spec.generation).axes != 3) {
    checks.add("optical_latency", fmt::format("{} has no optical switches, v4 and v5p have",
                                              name_of(spec.generation)));
  }
  return checks.problems();
}

BuiltTopology build(const TpuSliceSpec& spec) {
  assert(check(spec).empty());
  BuiltTopology built;
  if (spec.twisted) {
    built = build(twisted_torus_of(spec));
  } else {
    const std::vector<bool> wraps = wraps_of(spec.generation, spec.shape);
    TorusSpec torus{
        .link_bandwidth = spec.link_bandwidth.value_or(link_bandwidth_of(spec.generation)),
        .link_latency = spec.link_latency};
    for (std::size_t axis = 0; axis < wraps.size(); ++axis) {
      torus.axes.push_back({.size = spec.shape[axis], .wraps = wraps[axis]});
    }
    built = build(torus);
  }
  if (spec.optical_latency) {
    built.fabric = with_optical_latency(built.fabric, spec.shape, *spec.optical_latency);
  }
  if (spec.hosts) add_hosts(spec, built);
  return built;
}

}  // namespace stepsim
