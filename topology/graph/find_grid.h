// find_grid() recognises a torus or mesh: chips that are linked to nothing but their neighbours
// along axes, each of them a line or a ring. Neither names nor numbers count, only the links:
//
//     5 --- 2 --- 7              axes of 3 and 2 (a mesh): places 0 to 5 are
//     |     |     |                5 2 7
//     0 --- 4 --- 1                0 4 1
//
// A graph is a grid if it is the Cartesian product of lines and rings. Its prime factors are found
// by squares: two links of a chip belong to one factor unless they span exactly one square without
// a diagonal, and opposite links of a square belong to one factor (Feder 1992; Imrich, Peterin
// 2007). A ring of four is the product of two lines of two, so such pairs are put together: of the
// readings of a hypercube that is the one with the fewest axes.
//
// A line of links may be of any bandwidth and latency, as long as both directions of a cable are
// alike.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/network/fabric.h"
#include "topology/graph/grid_router.h"

namespace stepsim {

struct ChipGrid {
  std::vector<GridAxis> axes;        // innermost first; each of at least two chips
  std::vector<std::uint32_t> place;  // by chip
  std::vector<GridCable> cables;     // as GridRouter wants them
  bool in_order() const;             // whether chip c has place c
};

// Returns nullopt if the graph has other nodes than chips, or is no grid of at most four axes. Chip
// 0 is at the first place of rings. If the chips are numbered along the axes of such a grid, it is
// the one that is returned: in_order(). REQUIRES: at least two chips; chip c is NodeId(c). O(chips
// x links of a chip^3).
std::optional<ChipGrid> find_grid(const Fabric& fabric);

// Returns the grid of these sizes, innermost first, whose chips are numbered along its axes;
// nullopt if the graph is another one. Axes of size 1 are left out. REQUIRES: as above; the sizes
// multiply to the number of chips.
std::optional<ChipGrid> find_grid(const Fabric& fabric, const std::vector<std::uint32_t>& sizes);

}  // namespace stepsim
