// Places gives the position of each chip of a cluster: a list of named levels, innermost first, and
// the chip's coordinate in each. Plans and collective algorithms are mapped onto levels by name.
//
//   DGX SuperPod:  gpu (8), node (32), scalable_unit (2)     switched levels
//   torus:         x (4), y (4), z (8)                       torus axes, each wrapped or not
//
// Chip number c has mixed-radix coordinates, innermost level fastest:
//   c = coordinate(0) + size(0) * (coordinate(1) + size(1) * ...)
// so a cluster is always a full box of its levels.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/ids.h"

namespace stepsim {

enum class LevelKind : std::uint8_t {
  kSwitched,   // members of the level reach each other through switches, at equal cost
  kTorusAxis,  // members stand in a line, each linked to its neighbours; a ring where `wraps`
};

// LevelMembers says what the members of a level are. Costs ask for this and never for the level's
// name, which is for people and for Ranks::map.
enum class LevelMembers : std::uint8_t {
  kChip,     // chips of one node, or of one torus
  kPackage,  // parts of one node that hold chips: sockets, PCIe switches, packages
  kNode,     // nodes: what the network joins, with one chip or many
  kRack,
  kLeaf,
  kPod,
  kSlice,
};
inline constexpr std::array kLevelMembers = {
    LevelMembers::kChip, LevelMembers::kPackage, LevelMembers::kNode, LevelMembers::kRack,
    LevelMembers::kLeaf, LevelMembers::kPod,     LevelMembers::kSlice};
std::string_view name_of(LevelMembers members);  // "chip"

struct Level {
  std::string name;
  std::uint32_t size = 1;
  LevelKind kind = LevelKind::kSwitched;
  LevelMembers members = LevelMembers::kNode;
  bool members_derived = false;  // nobody declared `members`, the links tell it
  bool wraps = false;            // torus axes only: the last member is linked to the first
  // Torus axes only: the last member is linked to the first of another row, half way further along
  // every axis that wraps (topology/kinds/torus/twisted_torus.h).
  bool twists = false;
};

// PlacedGrid is a torus or mesh that the chips form though their numbers do not follow it: a graph
// that a person listed in another order (topology/graph/find_grid.h).
struct PlacedGrid {
  std::vector<Level> axes;           // innermost first, all of them torus axes
  std::vector<std::uint32_t> place;  // by chip number: its number in the box of axes
};

struct Places {
  std::vector<Level> levels;         // innermost first
  std::vector<NodeId> chips;         // by chip number
  std::optional<PlacedGrid> grid{};  // unset: if the chips form a grid, the levels say so

  // Returns the position of chip number `chip` on levels[level]. O(levels).
  std::uint32_t coordinate(std::uint32_t chip, std::size_t level) const;

  std::optional<std::size_t> find(std::string_view level_name) const;
};

// Returns the chips of a node: those of the innermost switched levels whose members are chips or
// packages. 1 if the innermost level is of another kind. Two chips are in one node if their numbers
// divided by this are equal. O(levels).
std::uint32_t chips_per_node(const Places& places);

}  // namespace stepsim
