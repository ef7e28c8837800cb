#include "topology/graph/levels.h"

#include <utility>

namespace stepsim {

std::vector<Level> levels_of_first(const std::vector<Level>& levels, std::uint32_t members) {
  std::vector<Level> first;
  std::uint32_t left = members;  // members left, in places of the levels still to come
  for (const Level& level : levels) {
    if (level.size == 1 && !first.empty()) continue;
    if (left == 1 && !first.empty()) break;
    if (left % level.size != 0) {
      first.push_back(
          {.name = level.name, .size = left, .kind = level.kind, .members = level.members});
      break;
    }
    first.push_back(level);
    left /= level.size;
  }
  return first;
}

std::vector<Level> levels_of_blocks(const std::vector<Level>& levels,
                                    std::uint32_t members_of_block, const std::string& block,
                                    LevelMembers blocks) {
  std::uint32_t members = 1;
  std::size_t above = 0;  // first level outside the innermost level of blocks
  while (above < levels.size() &&
         (members <= members_of_block || members % members_of_block != 0)) {
    members *= levels[above++].size;
  }
  Level innermost = {.name = block, .size = members / members_of_block, .members = blocks};
  if (above > 0 && levels[above - 1].kind == LevelKind::kTorusAxis &&
      levels[above - 1].size == innermost.size) {
    innermost = levels[above - 1];
  }
  std::vector<Level> outer = {std::move(innermost)};
  outer.insert(outer.end(), levels.begin() + static_cast<std::ptrdiff_t>(above), levels.end());
  return outer;
}

}  // namespace stepsim
