// ReductionTree is a tree for a share of the data, which is added up on the way to the root and
// copied on the way back. Its nodes are members and switches, in any order:
//
//   one_tree()     all members are leaves below switches                       NVLS, SHARP
//
//   tree_a_rail()  a tree for each place in a node, with its d-th of the data: the others of a node
//                  below their NVSwitch, that below the member on the rail, the members on the rail
//                  below the switches of their network                         NVLS with SHARP
//
//                      rail switch 0                 where a node has no one switch for all of its
//                       /         \                  members, these stand right below the member on
//                  member 0      member d            the rail (NCCL's CollNetDirect)
//                     |             |
//                 NVSwitch      NVSwitch
//                  / |  \        / |  \               tree of rail 0
//                 1  2 .. d-1  d+1 ..  2d-1
//
//   binary_trees() two binary trees of members a rail between nodes, each with half of its share
//                  (Sanders, Speck, Traeff 2009); inside nodes the same        NVLSTree
//                  or the others of a node in a chain below the one on the rail  NCCL's tree

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/ids.h"
#include "sim/collectives/collective.h"

namespace stepsim {

struct ReductionTree {
  struct Node {
    bool there = false;
    std::uint32_t parent = 0;      // the root is its own parent
    std::optional<LinkId> up{};    // over that link to the parent, and back; none: by the route
    std::optional<LinkId> down{};  // between the two members
    bool in_node = false;          // those links are inside a node
    // Found by relate():
    std::uint32_t place = 0;   // among the parent's children
    std::uint32_t depth = 0;   // below the root
    std::uint32_t height = 0;  // above its lowest leaf
    std::vector<std::uint32_t> children{};
  };
  std::vector<Node> nodes;  // members, then switches; nodes outside the tree are absent
  std::uint32_t root = 0;
};

// REQUIRES: shape.tree is set.
ReductionTree one_tree(const GroupShape& shape);

// REQUIRES: shape.rail_trees is not empty.
std::vector<ReductionTree> tree_a_rail(const GroupShape& shape);

enum class InsideNode : std::uint8_t { kSwitch, kStar, kChain };

// REQUIRES: two dimensions or more; kSwitch: shape.node_trees is not empty, and each tree has one
// switch.
std::vector<ReductionTree> binary_trees(const GroupShape& shape, InsideNode inside);

// Returns the parents of the nodes of an in-order binary tree of n nodes, whose root 0 has one
// child. The second tree is the first mirrored (n even) or moved by one (n odd), so that an inner
// node of one tree is a leaf of the other.
std::uint32_t parent_in_order(std::uint32_t node, std::uint32_t n);
std::uint32_t node_of_second_tree(std::uint32_t position, std::uint32_t n);

}  // namespace stepsim
