// TorusGrid holds the positions of a group that fills a box of torus axes, and the links between
// neighbours. A position is a number with the coordinates as digits, the innermost axis fastest
// (GroupShape).
//
//   line      0 - 1 - 2 - 3
//   wrapped   0 - 1 - 2 - 3 - 0
//   twisted   the link from 3 arrives in the row that lies half a round further on along every axis
//             that wraps (topology/kinds/torus/twisted_torus.h)

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/collectives/algorithm.h"

namespace stepsim {

class TorusGrid {
 public:
  using Coordinates = std::array<std::uint32_t, kMaxDimensions>;

  // REQUIRES: at most kMaxDimensions dimensions, all of them torus axes.
  explicit TorusGrid(std::vector<GroupDimension> axes);

  std::uint32_t axes() const { return static_cast<std::uint32_t>(axes_.size()); }
  const GroupDimension& axis(std::uint32_t number) const { return axes_[number]; }
  Coordinates coordinates(std::uint32_t position) const;

  // Returns the position one place on along an axis, or one place back; nullopt at the end of a
  // line.
  std::optional<std::uint32_t> neighbour(std::uint32_t position, std::uint32_t axis,
                                         bool backwards) const;

  // Returns all positions that are linked to this one, each once: by axis, ahead before back.
  std::vector<std::uint32_t> neighbours(std::uint32_t position) const;

 private:
  std::uint32_t half_a_round_on(std::uint32_t position) const;

  std::vector<GroupDimension> axes_;
  Coordinates stride_{};  // by axis: distance of neighbours in numbers of positions
};

}  // namespace stepsim
