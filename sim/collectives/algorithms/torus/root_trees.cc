#include "sim/collectives/algorithms/torus/root_trees.h"

#include <algorithm>
#include <cassert>
#include <tuple>

#include "sim/collectives/algorithms/torus/torus_grid.h"

namespace stepsim {
namespace {

// Forest holds the trees of the root's neighbours, over positions.
class Forest {
 public:
  Forest(const GroupShape& shape, std::uint32_t root)
      : grid_(shape.dimensions),
        root_(root),
        parent_(shape.members(), root),
        tree_(shape.members(), 0),
        branch_(shape.members(), 0) {
    grow();
    while (hand_over_a_branch()) {
    }
  }

  std::uint32_t parent(std::uint32_t position) const { return parent_[position]; }
  // Returns all positions except the root, each after its parent.
  const std::vector<std::uint32_t>& from_the_root() const { return order_; }

 private:
  // Grows shortest paths, each through the smallest tree that offers one.
  void grow() {
    std::vector<std::optional<std::uint32_t>> distance(parent_.size());
    distance[root_] = 0;
    order_ = {root_};
    for (std::size_t i = 0; i < order_.size(); ++i) {
      for (const std::uint32_t next : grid_.neighbours(order_[i])) {
        if (distance[next]) continue;
        distance[next] = *distance[order_[i]] + 1;
        order_.push_back(next);
      }
    }
    order_.erase(order_.begin());
    for (const std::uint32_t position : order_) {
      if (*distance[position] == 1) {
        tree_[position] = static_cast<std::uint32_t>(size_.size());
        size_.push_back(1);
        continue;
      }
      std::optional<std::uint32_t> best;
      for (const std::uint32_t next : grid_.neighbours(position)) {
        if (*distance[next] + 1 != *distance[position]) continue;
        if (!best || size_[tree_[next]] < size_[tree_[*best]]) best = next;
      }
      parent_[position] = *best;
      tree_[position] = tree_[*best];
      ++size_[tree_[position]];
    }
  }

  // Moves the branch that balances most from a tree to a smaller tree beside it, as near to the
  // root as possible. Returns false if no branch improves the balance.
  bool hand_over_a_branch() {
    weigh_branches();
    std::tuple<std::int64_t, std::int64_t> most{0, 0};  // gain, levels that are not added
    std::optional<std::uint32_t> moved;
    std::uint32_t onto = root_;
    for (const std::uint32_t position : order_) {
      if (parent_[position] == root_) continue;
      const std::int64_t here = size_[tree_[position]];
      const std::int64_t branch = branch_[position];
      for (const std::uint32_t next : grid_.neighbours(position)) {
        if (next == root_ || tree_[next] == tree_[position]) continue;
        const std::int64_t there = size_[tree_[next]];
        if (there + branch >= here) continue;
        const std::tuple gain{branch * (here - there - branch), -std::int64_t{level_[next]}};
        if (moved && gain <= most) continue;
        most = gain;
        moved = position;
        onto = next;
      }
    }
    if (!moved) return false;
    parent_[*moved] = onto;
    size_[tree_[*moved]] -= branch_[*moved];
    size_[tree_[onto]] += branch_[*moved];
    sort_from_the_root();
    return true;
  }

  void weigh_branches() {
    std::ranges::fill(branch_, 1);
    for (auto position = order_.rbegin(); position != order_.rend(); ++position) {
      if (parent_[*position] != root_) branch_[parent_[*position]] += branch_[*position];
    }
    level_.assign(parent_.size(), 0);
    for (const std::uint32_t position : order_) level_[position] = level_[parent_[position]] + 1;
  }

  // Sets order_ and tree_ from the parents.
  void sort_from_the_root() {
    std::vector<std::vector<std::uint32_t>> children(parent_.size());
    for (const std::uint32_t position : order_) children[parent_[position]].push_back(position);
    order_ = children[root_];
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::uint32_t position = order_[i];
      if (parent_[position] != root_) tree_[position] = tree_[parent_[position]];
      order_.insert(order_.end(), children[position].begin(), children[position].end());
    }
  }

  TorusGrid grid_;
  std::uint32_t root_;
  std::vector<std::uint32_t> parent_;  // by position; the root's entry is never read
  std::vector<std::uint32_t> tree_;    // by position
  std::vector<std::uint32_t> branch_;  // by position: members of the branch from it on
  std::vector<std::uint32_t> level_;   // by position: links to the root
  std::vector<std::uint32_t> size_;    // by tree
  std::vector<std::uint32_t> order_;
};

}  // namespace

RootTrees::RootTrees(const CollectiveTask& task, const GroupShape& shape)
    : FlatAlgorithm(task, shape.order), nodes_(shape.members()) {
  assert(shape.is_torus());
  assert(task.op == CollectiveOp::kGather || task.op == CollectiveOp::kScatter);
  const Forest forest(shape, position_of(task.root));
  for (const std::uint32_t position : forest.from_the_root()) {
    const std::uint32_t member = member_at(position);
    const std::uint32_t parent = member_at(forest.parent(position));
    nodes_[member].parent = parent;
    nodes_[member].place = static_cast<std::uint32_t>(nodes_[parent].children.size());
    nodes_[parent].children.push_back(member);
    std::uint32_t levels = 0;
    for (std::uint32_t above = member; above != task.root; above = *nodes_[above].parent) {
      std::vector<std::vector<std::uint32_t>>& below = nodes_[above].below;
      if (below.size() <= levels) below.resize(levels + 1);
      below[levels++].push_back(member);
    }
    rounds_ = std::max(rounds_, levels);
  }
  if (gathers()) return;
  for (const Node& node : nodes_) {
    lanes_ = std::max(lanes_, static_cast<std::uint32_t>(node.children.size()));
  }
}

const std::vector<std::uint32_t>* RootTrees::carried(std::uint32_t round,
                                                     std::uint32_t member) const {
  const std::uint32_t levels = gathers() ? round : rounds_ - 1 - round;
  const auto& below = nodes_[member].below;
  return levels < below.size() ? &below[levels] : nullptr;
}

std::optional<std::uint32_t> RootTrees::lower_end(std::uint32_t lane, std::uint32_t round,
                                                  std::uint32_t member) const {
  std::uint32_t lower = member;
  if (!gathers()) {
    if (lane >= nodes_[member].children.size()) return std::nullopt;
    lower = nodes_[member].children[lane];
  }
  return carried(round, lower) == nullptr ? std::nullopt : std::optional(lower);
}

std::optional<CollectiveMessage> RootTrees::message(std::uint32_t lane, std::uint32_t round,
                                                    std::uint32_t member) const {
  const auto lower = lower_end(lane, round, member);
  if (!lower) return std::nullopt;
  CollectiveMessage result{.to = gathers() ? *nodes_[member].parent : *lower, .bytes = {}};
  for (const std::uint32_t of : *carried(round, *lower)) {
    result.bytes += bytes_of_parts(shard_of(of), 1, members());
  }
  return result;
}

std::uint32_t RootTrees::receives(std::uint32_t lane, std::uint32_t round,
                                  std::uint32_t member) const {
  const Node& node = nodes_[member];
  if (gathers()) {
    return static_cast<std::uint32_t>(std::ranges::count_if(
        node.children, [&](std::uint32_t child) { return carried(round, child) != nullptr; }));
  }
  return node.parent && node.place == lane && carried(round, member) != nullptr ? 1 : 0;
}

// A scatter sends down what came down in the round before, in the lane of the member's place.
std::optional<LaneGate> RootTrees::gate(std::uint32_t, std::uint32_t round,
                                        std::uint32_t member) const {
  if (gathers() || round == 0 || !nodes_[member].parent) return std::nullopt;
  return LaneGate{.lane = nodes_[member].place, .round = round - 1};
}

void RootTrees::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                       std::vector<std::uint32_t>& out) const {
  for (const std::uint32_t of : *carried(round, *lower_end(lane, round, member))) {
    out.push_back(shard_of(of));
  }
}

}  // namespace stepsim
