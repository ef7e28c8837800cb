// Trees of switches as algorithms walk them: parents are given, relate() finds the rest.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/base/ids.h"

namespace stepsim {

struct TreeNode {
  std::uint32_t parent = 0;  // itself: a root
  LinkId up;
  LinkId down;
  std::uint32_t place = 0;   // among the parent's children
  std::uint32_t depth = 0;   // below the root
  std::uint32_t height = 0;  // above the lowest leaf
  std::vector<std::uint32_t> children{};
};

// Fills in all but parents and links. Returns the nodes from the roots down, so that backwards
// children come before their parents. `Node` is a TreeNode. O(nodes).
template <typename Node>
std::vector<std::uint32_t> relate(std::vector<Node>& nodes) {
  std::vector<std::uint32_t> reached;
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    if (nodes[node].parent == node) {
      reached.push_back(node);
      continue;
    }
    std::vector<std::uint32_t>& siblings = nodes[nodes[node].parent].children;
    nodes[node].place = static_cast<std::uint32_t>(siblings.size());
    siblings.push_back(node);
  }
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const std::uint32_t child : nodes[reached[i]].children) {
      nodes[child].depth = nodes[reached[i]].depth + 1;
      reached.push_back(child);
    }
  }
  for (std::size_t i = reached.size(); i-- > 0;) {
    const Node& node = nodes[reached[i]];
    if (node.parent == reached[i]) continue;
    Node& parent = nodes[node.parent];
    parent.height = std::max(parent.height, node.height + 1);
  }
  return reached;
}

}  // namespace stepsim
