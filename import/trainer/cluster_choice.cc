#include "import/trainer/cluster_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "proto/catalog/catalog.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

bool is_cluster(const std::string& name) {
  return find(CatalogKind::kCluster, name).found.has_value();
}

bool is_flat(const std::string& generation) {
  return generation == "v5e" || generation == "v6e";
}

// Axes of cubes: 1, 2, or a multiple of 4.
bool is_axis(std::int64_t size) {
  return size == 1 || size == 2 || size % 4 == 0;
}

std::string shape_text(std::int64_t x, std::int64_t y, std::int64_t z, bool flat) {
  return flat ? fmt::format("{}x{}", x, y) : fmt::format("{}x{}x{}", x, y, z);
}

// The shape whose longest axis is shortest.
std::optional<std::string> slice_shape(const std::string& generation, std::int64_t chips) {
  constexpr std::int64_t kMostAxis = 64;
  const bool flat = is_flat(generation);
  std::optional<std::string> best;
  std::int64_t shortest = kMostAxis + 1;
  for (std::int64_t x = 1; x <= kMostAxis && x <= chips; ++x) {
    if (chips % x != 0 || !is_axis(x)) continue;
    for (std::int64_t y = x; y <= kMostAxis && y <= chips / x; ++y) {
      if (chips / x % y != 0 || !is_axis(y)) continue;
      const std::int64_t z = chips / x / y;
      const bool fits = flat ? z == 1 : z >= y && is_axis(z) && z <= kMostAxis;
      const std::int64_t longest = flat ? y : z;
      if (!fits || longest >= shortest) continue;
      const std::string shape = shape_text(x, y, z, flat);
      if (!is_cluster(generation + "-" + shape)) continue;
      shortest = longest;
      best = shape;
    }
  }
  return best;
}

}  // namespace

std::optional<std::string> gpu_cluster(std::int64_t chips, const std::string& family) {
  constexpr std::int64_t kNode = 8;
  if (chips < 1 || chips > (1 << 20)) return std::nullopt;
  const std::string name = fmt::format("{}-{}", family, (chips + kNode - 1) / kNode * kNode);
  if (!is_cluster(name)) return std::nullopt;
  return name;
}

std::optional<std::string> tpu_cluster(const std::string& generation, std::int64_t chips,
                                       std::int64_t slices) {
  if (chips < 1 || slices < 1 || chips % slices != 0 || chips > (1 << 20)) return std::nullopt;
  const std::optional<std::string> shape = slice_shape(generation, chips / slices);
  if (!shape) return std::nullopt;
  const std::string name = slices == 1
                               ? generation + "-" + *shape
                               : fmt::format("multislice-{}-{}x{}", generation, slices, *shape);
  if (!is_cluster(name)) return std::nullopt;
  return name;
}

std::optional<TpuName> tpu_name(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos) return std::nullopt;
  const std::string generation = name.substr(0, dash);
  const auto count = number_in<std::int64_t>(name.substr(dash + 1));
  const std::array known = {"v4", "v5p", "v5e", "v6e", "v7"};
  if (!count || *count < 1 || std::ranges::find(known, generation) == known.end()) {
    return std::nullopt;
  }
  const bool counts_cores = generation == "v4" || generation == "v5p";
  return TpuName{.generation = generation, .chips = counts_cores ? *count / 2 : *count};
}

}  // namespace stepsim
