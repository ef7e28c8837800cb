// NodeRelay is an all-to-all in two legs. One of them goes over a member's own rail (the members at
// the same place of every node):
//
//   pxn              inside the node to the member on the rail of the destination, then over that
//                    rail: a message a node and rail instead of one for each pair, and no data
//                    cross between rails (NCCL's PXN)
//   node-forwarding  over the own rail to the node of the destination, then inside that node: data
//                    that several members of a node want cross once (DeepEP's dispatch)
//
// The two mirror each other: an expert layer dispatches by forwarding and combines by pxn. If nodes
// share the matrix (ByteMatrix::shared), messages between nodes carry the shared bytes: one copy of
// a source's data for a whole node (kToNode, node-forwarding), or the sum of a whole node for one
// destination (kFromNode, pxn).
//
// The data go in chunks: one is in the second leg while the next is in the first, so that the
// switch in the node and the network cards work at once. Within a leg a member serves one partner
// after another, nearest first.
//
// On an idle network with d members a node, M nodes, S bytes a member, cards of W and links of
// W_node in the node: S max((d-1)/(d W_node), (M-1)/(M W)), plus the first leg of one chunk and d -
// 1 + M - 1 trips for each chunk.

#pragma once

#include <vector>

#include "sim/collectives/algorithm.h"

namespace stepsim {

enum class FirstLeg : std::uint8_t { kNode, kRail };  // pxn, node-forwarding

class NodeRelay final : public CollectiveAlgorithm {
 public:
  // The first dimension is the node. REQUIRES: at least two dimensions; all-to-all; if nodes share
  // the matrix, its nodes are those of the shape.
  NodeRelay(const CollectiveTask& task, GroupShape shape, FirstLeg first);

  std::uint32_t members() const override { return shape_.members(); }
  std::uint32_t lanes() const override { return chunks_; }
  std::uint32_t rounds() const override { return rounds_of(true) + rounds_of(false); }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  bool gated() const override { return chunks_ > 1; }
  std::optional<LaneGate> gate(std::uint32_t lane, std::uint32_t round,
                               std::uint32_t member) const override;
  std::uint32_t shards() const override { return members() * members(); }
  std::uint32_t pieces() const override { return chunks_; }
  std::uint32_t shard_of(std::uint32_t member) const override { return member; }
  bool forwards_shared() const override;
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  struct Leg {
    bool in_node = false;  // false: over the rail
    bool first = false;
    std::uint32_t step = 0;  // places on
  };
  std::uint32_t nodes() const { return members() / per_node_; }
  std::uint32_t rounds_of(bool in_node) const { return (in_node ? per_node_ : nodes()) - 1; }
  Leg leg(std::uint32_t round) const;
  std::uint32_t member_at(std::uint32_t inside, std::uint32_t node) const {
    return shape_.order[node * per_node_ + inside];
  }
  std::uint32_t partner(const Leg& leg, std::uint32_t member, bool back) const;
  Bytes bytes_of(std::uint32_t shard, std::uint32_t lane) const;
  Bytes bytes_between_nodes(std::uint32_t lane, std::uint32_t from, std::uint32_t to) const;

  // Calls `visit(source, destination)` for each pair whose data are in the message.
  template <typename Visit>
  void for_each_pair(const Leg& leg, std::uint32_t from, std::uint32_t to, Visit visit) const;

  CollectiveTask task_;
  GroupShape shape_;
  std::uint32_t per_node_;
  FirstLeg first_;
  std::uint32_t chunks_ = 1;
  std::vector<std::uint32_t> position_;  // by member
};

}  // namespace stepsim
