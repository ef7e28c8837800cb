#include "sim/network/places.h"

namespace stepsim {

std::uint32_t Places::coordinate(std::uint32_t chip, std::size_t level) const {
  for (std::size_t inner = 0; inner < level; ++inner) {
    chip /= levels[inner].size;
  }
  return chip % levels[level].size;
}

std::optional<std::size_t> Places::find(std::string_view level_name) const {
  for (std::size_t level = 0; level < levels.size(); ++level) {
    if (levels[level].name == level_name) {
      return level;
    }
  }
  return std::nullopt;
}

std::string_view name_of(LevelMembers members) {
  switch (members) {
    case LevelMembers::kChip:
      return "chip";
    case LevelMembers::kPackage:
      return "package";
    case LevelMembers::kNode:
      return "node";
    case LevelMembers::kRack:
      return "rack";
    case LevelMembers::kLeaf:
      return "leaf";
    case LevelMembers::kPod:
      return "pod";
    case LevelMembers::kSlice:
      return "slice";
  }
  return "";
}

std::uint32_t chips_per_node(const Places& places) {
  std::uint32_t chips = 1;
  for (const Level& level : places.levels) {
    const bool in_node =
        level.members == LevelMembers::kChip || level.members == LevelMembers::kPackage;
    if (!in_node || level.kind != LevelKind::kSwitched) break;
    chips *= level.size;
  }
  return chips;
}

}  // namespace stepsim
