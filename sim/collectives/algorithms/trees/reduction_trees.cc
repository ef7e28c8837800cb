#include "sim/collectives/algorithms/trees/reduction_trees.h"

#include <algorithm>
#include <cassert>

#include "sim/collectives/algorithms/node_rows.h"

namespace stepsim {
namespace {

// Fills in everything except parents and links.
void relate(ReductionTree& tree) {
  std::vector<std::uint32_t> reached;
  for (std::uint32_t i = 0; i < tree.nodes.size(); ++i) {
    ReductionTree::Node& node = tree.nodes[i];
    if (!node.there) continue;
    if (node.parent == i) {
      tree.root = i;
      reached.push_back(i);
      continue;
    }
    std::vector<std::uint32_t>& siblings = tree.nodes[node.parent].children;
    node.place = static_cast<std::uint32_t>(siblings.size());
    siblings.push_back(i);
  }
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const std::uint32_t child : tree.nodes[reached[i]].children) {
      tree.nodes[child].depth = tree.nodes[reached[i]].depth + 1;
      reached.push_back(child);
    }
  }
  for (std::size_t i = reached.size(); i-- > 1;) {
    const ReductionTree::Node& node = tree.nodes[reached[i]];
    ReductionTree::Node& parent = tree.nodes[node.parent];
    parent.height = std::max(parent.height, node.height + 1);
  }
}

std::uint32_t nodes_of(const GroupShape& shape) {
  return shape.members() / shape.node_size();
}

// Puts the members of every node below the member on the rail. Switches of nodes are the endpoints
// after the members.
ReductionTree inside_nodes(const GroupShape& shape, std::uint32_t rail, std::size_t endpoints,
                           InsideNode inside) {
  const std::uint32_t per_node = shape.node_size();
  ReductionTree tree{.nodes = std::vector<ReductionTree::Node>(endpoints)};
  for (std::uint32_t node = 0; node < nodes_of(shape); ++node) {
    const auto member = [&](std::uint32_t place) { return shape.order[node * per_node + place]; };
    tree.nodes[member(rail)].there = true;
    const std::uint32_t node_switch = shape.members() + node;
    const std::vector<SwitchTree::Node>* links =
        inside == InsideNode::kSwitch ? &shape.node_trees[node].nodes : nullptr;
    if (links != nullptr) {
      tree.nodes[node_switch] = {.there = true,
                                 .parent = member(rail),
                                 .up = (*links)[rail].down,
                                 .down = (*links)[rail].up,
                                 .in_node = true};
    }
    for (std::uint32_t place = 0; place < per_node; ++place) {
      if (place == rail) continue;
      ReductionTree::Node& leaf = tree.nodes[member(place)];
      const bool chained = inside == InsideNode::kChain;
      const std::uint32_t before = chained ? (place + per_node - 1) % per_node : rail;
      leaf = {.there = true, .parent = links != nullptr ? node_switch : member(before)};
      if (links == nullptr) continue;
      leaf.up = (*links)[place].up;
      leaf.down = (*links)[place].down;
      leaf.in_node = true;
    }
  }
  return tree;
}

std::size_t node_switches(const GroupShape& shape) {
  return shape.node_trees.empty() ? 0 : nodes_of(shape);
}

}  // namespace

ReductionTree one_tree(const GroupShape& shape) {
  assert(!shape.tree.nodes.empty());
  ReductionTree tree;
  for (const SwitchTree::Node& given : shape.tree.nodes) {
    tree.nodes.push_back(
        {.there = true, .parent = given.parent, .up = given.up, .down = given.down});
  }
  relate(tree);
  return tree;
}

std::vector<ReductionTree> tree_a_rail(const GroupShape& shape) {
  const std::uint32_t per_node = shape.node_size();
  const std::uint32_t leaves = nodes_of(shape);
  assert(shape.rail_trees.size() == per_node);
  const InsideNode inside = shape.node_trees.empty() ? InsideNode::kStar : InsideNode::kSwitch;
  std::size_t endpoints = shape.members() + node_switches(shape);
  for (const SwitchTree& rail : shape.rail_trees) endpoints += rail.nodes.size() - leaves;
  auto first_switch = static_cast<std::uint32_t>(shape.members() + node_switches(shape));
  std::vector<ReductionTree> trees;
  for (std::uint32_t rail = 0; rail < per_node; ++rail) {
    ReductionTree tree = inside_nodes(shape, rail, endpoints, inside);
    const std::vector<SwitchTree::Node>& between = shape.rail_trees[rail].nodes;
    // Leaf i of the rail is the rail's member in node i.
    const auto number = [&](std::uint32_t i) {
      return i < leaves ? shape.order[i * per_node + rail] : first_switch + i - leaves;
    };
    for (std::uint32_t i = 0; i < between.size(); ++i) {
      tree.nodes[number(i)] = {.there = true,
                               .parent = number(between[i].parent),
                               .up = between[i].up,
                               .down = between[i].down};
    }
    first_switch += static_cast<std::uint32_t>(between.size()) - leaves;
    relate(tree);
    trees.push_back(std::move(tree));
  }
  return trees;
}

std::vector<ReductionTree> binary_trees(const GroupShape& shape, InsideNode inside) {
  const std::uint32_t per_node = shape.node_size();
  const std::uint32_t nodes = nodes_of(shape);
  const std::vector<std::vector<std::uint32_t>> rows = node_rows(shape);
  const std::size_t endpoints =
      shape.members() + (inside == InsideNode::kSwitch ? node_switches(shape) : 0);
  std::vector<ReductionTree> trees;
  for (std::uint32_t rail = 0; rail < per_node; ++rail) {
    for (const bool second : {false, true}) {
      ReductionTree tree = inside_nodes(shape, rail, endpoints, inside);
      std::vector<std::uint32_t> member_of(nodes);  // by node of the tree
      for (std::uint32_t i = 0; i < nodes; ++i) {
        member_of[second ? node_of_second_tree(i, nodes) : i] = rows[i][rail];
      }
      for (std::uint32_t node = 0; node < nodes; ++node) {
        tree.nodes[member_of[node]].parent = member_of[parent_in_order(node, nodes)];
      }
      relate(tree);
      trees.push_back(std::move(tree));
    }
  }
  return trees;
}

// The height of node v > 0 is the position of its lowest one bit. Node 0 stands above the root of
// the others, which has the largest height.
std::uint32_t parent_in_order(std::uint32_t node, std::uint32_t n) {
  if (node == 0) return 0;
  const std::uint32_t bit = node & (~node + 1);
  const std::uint32_t parent = (node ^ bit) | (bit << 1);
  return parent < n ? parent : node ^ bit;
}

std::uint32_t node_of_second_tree(std::uint32_t position, std::uint32_t n) {
  return n % 2 == 0 ? n - 1 - position : (position + n - 1) % n;
}

}  // namespace stepsim
