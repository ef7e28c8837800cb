// dot_of() draws a topology in the language of Graphviz: `dot -Tsvg FILE`. The text names its own
// layout engine, so `dot` is always the command to use.
//
// Small networks are drawn in full: a box a chip, an ellipse a switch, groups of a level in frames,
// switches above what they join. Networks that are tori only are drawn as grids, the chips along z
// slanting backwards from each place; a cable round the end of an axis is two dashed stubs, each
// with the name of where it leads. A ring alone is drawn as one. A line is both directions of a
// cable. Colours tell bandwidths apart, and the
// legend below says which.
//
// Networks of more than `most_nodes` nodes are collapsed: whole groups of chips, with the switches
// that serve only them, become one box that says what is in it, and the label says so. The groups
// are the smallest of which there are at most `most_boxes`; of more than `most_switches` outside of
// all boxes, those of one kind become one. A line is then all links between two boxes, labelled
// with their number and their sum one way.

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

// How many chips one box stands for; 1 if the network is drawn in full.
std::size_t chips_per_box(const BuiltTopology& built, const DotOptions& options);

}  // namespace stepsim
