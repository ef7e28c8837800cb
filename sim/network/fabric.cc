#include "sim/network/fabric.h"

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
  return LinkId(static_cast<std::uint32_t>(links_.size() - 1));
}

LinkId Fabric::connect(NodeId a, NodeId b, Bandwidth bandwidth, Duration latency) {
  const LinkId forth = connect_one_way(a, b, bandwidth, latency);
  connect_one_way(b, a, bandwidth, latency);
  return forth;
}

std::string Fabric::link_name(LinkId id) const {
  const Link& named = link(id);
  if (named.from == named.to) {  // inside a node: what adds up, or what is read and written
    return node(named.from).name +
           (node(named.from).kind == NodeKind::kHost ? ".memory" : ".adder");
  }
  return node(named.from).name + ">" + node(named.to).name;
}

}  // namespace stepsim
