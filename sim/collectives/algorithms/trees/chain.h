// Chain is broadcast and reduce along rows of members, in chunks that follow each other: the root
// sends to the next member, which passes on what it has while the rest is coming. Reduce runs the
// rows backwards and adds. Several rows carry a part of the data each, and all of them begin at the
// root: over nodes one for each network card, which are the rings of rotated_rings.h cut open at
// the root (NCCL broadcasts along its rings).
//
// With rows of n members, a share of s bytes for each, chunks of c bytes, links of W and trips t:
// s/W + (n - 2) (t + c/W) + t, as c are stored and forwarded by n - 2 members (FORMULAS C24).

#pragma once

#include <vector>

#include "sim/collectives/algorithm.h"

namespace stepsim {

class Chain final : public CollectiveAlgorithm {
 public:
  // REQUIRES: the operation is broadcast or reduce; every row is a permutation of the members that
  // begins with the root.
  Chain(const CollectiveTask& task, std::vector<std::vector<std::uint32_t>> rows);

  std::uint32_t members() const override { return n_; }
  std::uint32_t lanes() const override { return static_cast<std::uint32_t>(rows_.size()); }
  std::uint32_t rounds() const override { return n_ - 2 + chunks_; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::pair<std::uint32_t, std::uint32_t> sending_rounds(std::uint32_t lane,
                                                         std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  std::uint32_t shards() const override { return lanes() * chunks_; }
  std::uint32_t shard_of(std::uint32_t member) const override { return member; }
  Bytes forwarded_chunk() const override { return task_.in_one_piece ? chunk_ : Bytes(0); }
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  struct Row {
    std::vector<std::uint32_t> members;  // by place
    std::vector<std::uint32_t> place;    // by member
  };
  bool reduces() const { return task_.op == CollectiveOp::kReduce; }
  // Returns the number of members before this one in the direction of the data.
  std::uint32_t hops_before(std::uint32_t lane, std::uint32_t member) const;
  Bytes bytes_of(std::uint32_t lane, std::uint32_t chunk) const;

  CollectiveTask task_;
  std::uint32_t n_;
  std::vector<Row> rows_;
  std::uint32_t chunks_ = 1;  // of each row
  Bytes chunk_{};             // the largest
};

}  // namespace stepsim
