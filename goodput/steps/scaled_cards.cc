#include "goodput/steps/scaled_cards.h"

#include <string_view>
#include <utility>

namespace stepsim {
namespace {

// "node3.gpu5" and "node3.nvswitch" are of one node.
std::string_view owner(const Node& node) {
  return std::string_view(node.name).substr(0, node.name.find('.'));
}

bool is_chip(const Cluster& cluster, NodeId node) {
  return node.index() < cluster.places.chips.size();
}

bool is_card(const Cluster& cluster, const Link& link, std::int64_t chips_per_node) {
  if (!is_chip(cluster, link.from) && !is_chip(cluster, link.to)) return false;
  const Node& from = cluster.fabric.node(link.from);
  const Node& to = cluster.fabric.node(link.to);
  return chips_per_node == 1 || owner(from) != owner(to);
}

}  // namespace

Bandwidth card_bandwidth(const Cluster& cluster, std::int64_t chips_per_node) {
  Bandwidth out{};
  Bandwidth all{};
  for (const Link& link : cluster.fabric.links()) {
    if (link.from.index() != 0) continue;
    all += link.bandwidth;
    if (is_card(cluster, link, chips_per_node)) out += link.bandwidth;
  }
  if (out.value() > 0) return out;
  return all.value() > 0 ? all : Bandwidth(25e9);
}

void scale_cards(double share, std::int64_t chips_per_node, Cluster& cluster) {
  Fabric scaled;
  for (const Node& node : cluster.fabric.nodes()) scaled.add(node.kind, node.name);
  for (const Link& link : cluster.fabric.links()) {
    const double left = is_card(cluster, link, chips_per_node) ? share : 1;
    scaled.connect_one_way(link.from, link.to, left * link.bandwidth, link.latency);
  }
  for (const LinkGroup& group : cluster.fabric.groups()) scaled.add_group(group.links, group.down);
  cluster.fabric = std::move(scaled);
}

}  // namespace stepsim
