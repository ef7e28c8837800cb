// dot_of() draws a topology in the language of Graphviz: `dot -Tsvg FILE`. The text names its own
// layout engine, so `dot` is always the command to use.
//
// Small networks are drawn in full: a box for each chip, an ellipse for each switch, a frame for
// each group of a level, and switches above the nodes that they join. Networks that consist only of
// tori are drawn as grids. The chips along z slant backwards from each place. A cable round the end
// of an axis becomes two dashed stubs, each with the name of the other end. A single ring is drawn
// as a ring. A line is both directions of a cable. Colours stand for bandwidths, and the legend
// explains them. Of more than five equal parts beside one another (eight chips or switches) two, "N
// more" and the last one are drawn; parts that are made of something else, as with a fault, are
// drawn too.
//
// A torus of more than `most_nodes` nodes is thinned: each axis has its first two places, all those
// between as one, and its last.
//
// Other networks of more than `most_nodes` nodes are collapsed. Whole groups of chips, with the
// switches that serve only them, become one box that lists its content, and the label says so. The
// groups are the smallest of which there are at most `most_boxes`; where that would be a single
// one, as in a graph of one level, they are equal parts of the last level, by its smallest
// switches. If more than `most_switches` switches are outside all boxes, those of one kind become
// one. A line then stands for all links between two boxes, labelled with their number and their
// total bandwidth one way.

#pragma once

#include <cstddef>
#include <string>

#include "topology/graph/built_topology.h"

namespace stepsim {

struct DotOptions {
  std::string title{};
  std::size_t most_nodes = 160;
  std::size_t most_boxes = 40;
  std::size_t most_switches = 8;
};

std::string dot_of(const BuiltTopology& built, const DotOptions& options);

// Returns how many chips one box stands for; 1 if the network is drawn in full.
std::size_t chips_per_box(const BuiltTopology& built, const DotOptions& options);

}  // namespace stepsim
