// GroupKinds sorts groups of chips by what collectives know about them: the shape of the group, its
// nodes, and what a library knows about its links. In groups of one kind a collective runs by the
// same messages, only between other chips and over other links.
//
// The shape of a kind names links by their place: the k-th link of its trees of switches is
// LinkId(k), which stands for links[k] of each group.

#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/collectives/library_choice.h"
#include "sim/hardware/cluster.h"
#include "sim/run/collectives/collective_edges.h"

namespace stepsim {

struct GroupKind {
  GroupShape shape;
  std::vector<std::uint32_t> nodes;  // by member; numbered in the order of the members
  GroupLinks links;                  // without a type of elements
  friend bool operator==(const GroupKind&, const GroupKind&) = default;
};

class GroupKinds {
 public:
  explicit GroupKinds(const Cluster& cluster) : cluster_(cluster) {}

  struct Place {
    std::uint32_t kind = 0;
    std::vector<LinkId> links{};  // of the trees of its shape
  };
  // O(chips x length of a route).
  Place place_of(std::span<const std::uint32_t> chips);

  const GroupKind& kind(std::uint32_t number) const { return kinds_[number]; }

  // Links of a tree of switches count as links of the node. If the tree spans several nodes, they
  // count as network links unless the link says that it is inside a node.
  HopKind hop_kind(const GroupKind& kind, const CollectiveEdge& edge) const;

 private:
  const Cluster& cluster_;
  std::vector<GroupKind> kinds_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;  // compared, never iterated
};

}  // namespace stepsim
