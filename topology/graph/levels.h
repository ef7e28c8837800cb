// Levels of Places (sim/network/places.h) for networks that are not fully populated.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/network/places.h"

namespace stepsim {

// Returns the levels of the first `members` places of a box. Inner levels are kept as long as they
// are full. The rest becomes one level, named after the first that is not full. Levels of a single
// member are left out, except an innermost one.
//
//   {gpu 8, node 32, unit 4}, 256 members: {gpu 8, node 32};   264 members: {gpu 8, node 33}
std::vector<Level> levels_of_first(const std::vector<Level>& levels, std::uint32_t members);

// Returns the levels of a box seen from blocks of `members_of_block` consecutive places each: an
// innermost level named `block`, however small, whose members are blocks, then the levels above
// it.
//
//   {rail 8, node 32, unit 4} in blocks of 8:  {node 32, unit 4}
//                             in blocks of 32: {node 8, unit 4}
//
// A torus axis keeps its name. REQUIRES: members_of_block divides the size of the box.
std::vector<Level> levels_of_blocks(const std::vector<Level>& levels,
                                    std::uint32_t members_of_block, const std::string& block,
                                    LevelMembers blocks = LevelMembers::kNode);

}  // namespace stepsim
