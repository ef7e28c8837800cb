#include "sim/run/collectives/group_kinds.h"

#include <utility>

#include "sim/hardware/group_links.h"
#include "sim/hardware/group_shape.h"

namespace stepsim {
namespace {

// Puts the place of each link into the tree, and the links into `links`.
void name_by_place(SwitchTree& tree, std::vector<LinkId>& links) {
  const auto take = [&](LinkId& link) {
    links.push_back(std::exchange(link, LinkId(static_cast<std::uint32_t>(links.size()))));
  };
  for (SwitchTree::Node& node : tree.nodes) {
    take(node.up);
    take(node.down);
  }
}

class Hash {
 public:
  void add(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15U;
    hash_ ^= hash_ >> 29;
  }
  void add(const std::vector<std::uint32_t>& values) {
    add(values.size());
    for (const std::uint32_t value : values) add(value);
  }
  void add(const SwitchTree& tree) {
    add(tree.nodes.size());
    for (const SwitchTree::Node& node : tree.nodes) add(node.parent);
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0;
};

std::uint64_t hash_of(const GroupKind& kind) {
  Hash hash;
  hash.add(kind.shape.order);
  hash.add(kind.shape.uneven_nodes);
  hash.add(kind.nodes);
  hash.add(kind.shape.tree);
  for (const SwitchTree& tree : kind.shape.rail_trees) hash.add(tree);
  for (const SwitchTree& tree : kind.shape.node_trees) hash.add(tree);
  return hash.value();
}

}  // namespace

HopKind GroupKinds::hop_kind(const GroupKind& kind, const CollectiveEdge& edge) const {
  const bool is_inside = edge.link ? edge.in_node || kind.nodes.front() == kind.nodes.back()
                                   : kind.nodes[edge.from] == kind.nodes[edge.to];
  return is_inside ? cluster_.library.inside : HopKind::kNetwork;
}

GroupKinds::Place GroupKinds::place_of(std::span<const std::uint32_t> chips) {
  Place place;
  GroupKind kind{
      .shape = describe(cluster_, chips), .nodes = nodes_of(cluster_.places, chips), .links = {}};
  name_by_place(kind.shape.tree, place.links);
  for (SwitchTree& tree : kind.shape.rail_trees) name_by_place(tree, place.links);
  for (SwitchTree& tree : kind.shape.node_trees) name_by_place(tree, place.links);
  kind.links = links_of(cluster_, chips);
  const std::uint64_t hash = hash_of(kind);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (kinds_[known->second] != kind) continue;
    place.kind = known->second;
    return place;
  }
  place.kind = static_cast<std::uint32_t>(kinds_.size());
  by_hash_.emplace(hash, place.kind);
  kinds_.push_back(std::move(kind));
  return place;
}

}  // namespace stepsim
