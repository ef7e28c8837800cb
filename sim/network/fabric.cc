#include "sim/network/fabric.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace stepsim {

NodeId Fabric::add(NodeKind kind, std::string name) {
  nodes_.push_back({kind, std::move(name)});
  return NodeId(static_cast<std::uint32_t>(nodes_.size() - 1));
}

LinkId Fabric::connect_one_way(NodeId from, NodeId to, Bandwidth bandwidth, Duration latency) {
  assert(from.index() < nodes_.size() && to.index() < nodes_.size());
  assert(bandwidth > Bandwidth(0));
  links_.push_back({from, to, bandwidth, latency});
  const LinkId id(static_cast<std::uint32_t>(links_.size() - 1));
  if (node(from).kind == NodeKind::kChip && node(to).kind == NodeKind::kChip && from != to) {
    if (from.index() >= to_chips_.size()) to_chips_.resize(from.index() + 1);
    to_chips_[from.index()].push_back(id);
  }
  return id;
}

LinkId Fabric::connect(NodeId a, NodeId b, Bandwidth bandwidth, Duration latency) {
  const LinkId forth = connect_one_way(a, b, bandwidth, latency);
  connect_one_way(b, a, bandwidth, latency);
  return forth;
}

void Fabric::add_group(std::vector<LinkId> links, std::uint32_t down) {
  assert(!links.empty());
  std::ranges::sort(links, [this](LinkId a, LinkId b) {
    const NodeId from = link(a).from;
    const NodeId other = link(b).from;
    return from != other ? from < other : a < b;
  });
  double sum = 0;
  for (const LinkId id : links) {
    assert(!group_of(id) && link(id).latency == link(links.front()).latency);
    if (id.index() >= group_of_.size()) group_of_.resize(id.index() + 1);
    group_of_[id.index()] = LinkGroupId(static_cast<std::uint32_t>(groups_.size()));
    sum += link(id).bandwidth.value();
  }
  const Bandwidth mean(sum / static_cast<double>(links.size()));
  const Duration latency = link(links.front()).latency;
  groups_.push_back(
      {.links = std::move(links), .bandwidth = mean, .latency = latency, .down = down});
}

std::span<const LinkId> Fabric::alternatives(LinkGroupId group, NodeId node) const {
  const std::vector<LinkId>& links = groups_[group.index()].links;
  const auto begin =
      std::lower_bound(links.begin(), links.end(), node,
                       [this](LinkId id, NodeId from) { return link(id).from < from; });
  const auto end = std::upper_bound(
      begin, links.end(), node, [this](NodeId from, LinkId id) { return from < link(id).from; });
  return {begin, end};
}

std::string Fabric::link_name(LinkId id) const {
  const Link& named = link(id);
  if (named.from == named.to) {  // a link inside a node, for reduction or memory
    return node(named.from).name +
           (node(named.from).kind == NodeKind::kHost ? ".memory" : ".adder");
  }
  return node(named.from).name + ">" + node(named.to).name;
}

}  // namespace stepsim
