// Text for the enumerations of topologies in files: "adaptive", "pxn", "switch", "latency".

#pragma once

#include <string_view>

#include "sim/base/field_text.h"
#include "sim/network/fabric.h"
#include "sim/network/places.h"
#include "topology/graph/join.h"
#include "topology/graph/path_choice.h"
#include "topology/graph/shortest_path.h"

namespace stepsim {

std::string_view name_of(PathRule rule);
std::string_view name_of(CrossRail cross_rail);
std::string_view name_of(NodeKind kind);
std::string_view name_of(PathMetric metric);

template <>
inline constexpr std::size_t kValuesOf<PathRule> = 3;
template <>
inline constexpr std::size_t kValuesOf<CrossRail> = 2;
template <>
inline constexpr std::size_t kValuesOf<NodeKind> = 4;
template <>
inline constexpr std::size_t kValuesOf<LevelMembers> = kLevelMembers.size();
// Files choose between hops and latency. kSpareHosts is for routes round links that are down.
template <>
inline constexpr std::size_t kValuesOf<PathMetric> = 2;

}  // namespace stepsim
