// ByteMatrix says how many bytes each member of a group has for each other: a ragged all-to-all.
// It is shared data of an op graph (OpGraph::byte_matrices), the same for all members.
//
// Several members of a node may want the same data of one source. These can cross to the node once
// and be handed on inside it. Likewise the members of a node can add up what they send to one
// destination before it leaves. `shared` is what then crosses. Only algorithms that forward inside
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
  // [source * members + destination]; what a member has for itself does not travel.
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

// The larger of the largest send buffer and the largest receive buffer of a member, with what it
// keeps: CollectiveWork::bytes of this all-to-all. O(members^2).
Bytes largest_buffer(const ByteMatrix& matrix);

// The most that a member sends to others, or receives from them. O(members^2).
Bytes busiest_port(const ByteMatrix& matrix);

}  // namespace stepsim
