#include "sim/collectives/collective.h"

#include <algorithm>

namespace stepsim {

std::string_view name_of(CollectiveOp op) {
  constexpr std::array<std::string_view, kCollectiveOps.size()> kNames = {
      "all-reduce", "all-gather", "reduce-scatter", "all-to-all",   "broadcast", "reduce",
      "gather",     "scatter",    "barrier",        "send-receive", "permute"};
  return kNames[static_cast<std::size_t>(op)];
}

bool GroupShape::is_torus() const {
  return std::ranges::all_of(dimensions, &GroupDimension::torus_axis);
}

bool GroupShape::has_torus_axis() const {
  return std::ranges::any_of(dimensions, &GroupDimension::torus_axis);
}

bool GroupShape::twists() const {
  return is_torus() && std::ranges::any_of(dimensions, &GroupDimension::twists);
}

}  // namespace stepsim
