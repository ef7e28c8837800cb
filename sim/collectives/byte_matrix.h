// ByteMatrix gives the bytes that each member of a group sends to each other member, for a ragged
// all-to-all. It is shared data of an op graph (OpGraph::byte_matrices), the same for all members.
//
// Several members of a node may need the same data of one source. These data can cross to the node
// once and be handed on inside it. Likewise the members of a node can add up their data for one
// destination before they leave. `shared` is what crosses then. Only algorithms that forward inside
// a node use it (node_relay.h); members that send straight to each other send `bytes`.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace stepsim {

enum class NodeSharing : std::uint8_t {
  kNone,
  kToNode,    // shared[source * nodes + node]: one copy of the source's data for the whole node
  kFromNode,  // shared[destination * nodes + node]: one sum of the whole node for the destination
};

struct ByteMatrix {
  std::uint32_t members = 0;
  // Indexed [source * members + destination]. A member's data for itself are not sent.
  std::vector<Bytes> bytes{};
  NodeSharing sharing = NodeSharing::kNone;
  std::vector<std::uint32_t> node_of{};  // by member, 0 to nodes - 1; empty without sharing
  std::vector<Bytes> shared{};           // empty without sharing

  Bytes between(std::uint32_t source, std::uint32_t destination) const {
    return bytes[std::size_t{source} * members + destination];
  }
  std::uint32_t nodes() const {
    return node_of.empty() ? 0 : static_cast<std::uint32_t>(shared.size() / members);
  }
  Bytes between_node(std::uint32_t member, std::uint32_t node) const {
    return shared[std::size_t{member} * nodes() + node];
  }
};

// Returns the larger of the largest send buffer and the largest receive buffer of a member,
// including what it keeps: CollectiveWork::bytes of this all-to-all. O(members^2).
Bytes largest_buffer(const ByteMatrix& matrix);

// Returns the most that a member sends to others, or receives from them. O(members^2).
Bytes busiest_port(const ByteMatrix& matrix);

}  // namespace stepsim
