// Fabric is the network as the simulator sees it: nodes joined by one-way links. It is filled by
// the builders in topology/ and is read-only from then on.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace stepsim {

enum class NodeKind : std::uint8_t { kChip, kSwitch, kHost, kNic };

struct Node {
  NodeKind kind;
  std::string name;  // unique in the fabric: "node3.gpu5", "leaf2.1", "chip4.0.7"
};

struct Link {
  NodeId from;
  NodeId to;
  Bandwidth bandwidth;  // one direction
  Duration latency;     // of the first byte: cable and switch together
};

class Fabric {
 public:
  NodeId add(NodeKind kind, std::string name);

  // Adds one one-way link. REQUIRES: from and to were returned by add(); bandwidth > 0.
  LinkId connect_one_way(NodeId from, NodeId to, Bandwidth bandwidth, Duration latency);

  // Adds two links, one each way; returns the one from a to b, the other one has the next id.
  LinkId connect(NodeId a, NodeId b, Bandwidth bandwidth, Duration latency);

  const std::vector<Node>& nodes() const { return nodes_; }  // by NodeId
  const std::vector<Link>& links() const { return links_; }  // by LinkId
  const Node& node(NodeId id) const { return nodes_[id.index()]; }
  const Link& link(LinkId id) const { return links_[id.index()]; }

  std::string link_name(LinkId id) const;  // "node3.gpu5>node3.nvswitch"

 private:
  std::vector<Node> nodes_;
  std::vector<Link> links_;
};

}  // namespace stepsim
