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

}  // namespace stepsim
