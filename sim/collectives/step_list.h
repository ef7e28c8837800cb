// StepList is an algorithm that a user has written step by step: which member sends which blocks to
// which member, in which lane and round (the terms of algorithm.h). It is shared data of an op
// graph (OpGraph::step_lists). ListedSteps runs one, for any number of bytes.
//
// A list may be wrong. Before it is used, ask disproof() (proof.h) whether it does what its
// operation promises.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/collectives/algorithm.h"

namespace stepsim {

struct ListedStep {
  std::uint32_t lane = 0;
  std::uint32_t round = 0;
  std::uint32_t from = 0;  // member
  std::uint32_t to = 0;    // member
  bool reduce = false;
  std::vector<std::uint32_t> blocks{};
  std::optional<LaneGate> after{};  // `from` must have finished that round first
  std::vector<LaneGate> also_after{};
};

struct StepList {
  std::string name{};
  CollectiveOp op = CollectiveOp::kAllReduce;
  std::uint32_t members = 0;
  std::uint32_t shards = 0;
  std::uint32_t pieces = 1;
  std::vector<std::uint32_t> shard_of{};  // by member; empty: shard m is that of member m
  std::vector<ListedStep> steps{};
};

// Returns problems: members, blocks and rounds that do not exist, two steps of a member in one
// round of a lane, and shards that do not fit the operation. Fields are "steps[3].to".
std::vector<Problem> check(const StepList& list);

class ListedSteps final : public CollectiveAlgorithm {
 public:
  // Keeps a reference to the list. REQUIRES: check(list) is empty; the list is for the task's
  // operation.
  ListedSteps(const CollectiveTask& task, const StepList& list);

  std::uint32_t members() const override { return list_.members; }
  std::uint32_t lanes() const override { return lanes_; }
  std::uint32_t rounds() const override { return rounds_; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override {
    return received_[slot(lane, round, member)];
  }
  bool gated() const override { return gated_; }
  std::optional<LaneGate> gate(std::uint32_t lane, std::uint32_t round,
                               std::uint32_t member) const override;
  std::uint32_t shards() const override { return list_.shards; }
  std::uint32_t pieces() const override { return list_.pieces; }
  std::uint32_t shard_of(std::uint32_t member) const override {
    return list_.shard_of.empty() ? member : list_.shard_of[member];
  }
  void gates(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
             std::vector<LaneGate>& out) const override;
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  std::size_t slot(std::uint32_t lane, std::uint32_t round, std::uint32_t member) const {
    return (std::size_t{lane} * rounds_ + round) * list_.members + member;
  }
  const ListedStep* step(std::uint32_t lane, std::uint32_t round, std::uint32_t member) const;
  Bytes bytes_of(std::uint32_t block) const;

  CollectiveTask task_;
  const StepList& list_;
  std::uint32_t lanes_ = 1;
  std::uint32_t rounds_ = 0;
  bool gated_ = false;
  std::vector<std::optional<std::uint32_t>> step_of_;  // by slot: index of its step
  std::vector<std::uint32_t> received_;                // by slot: number of messages received
};

}  // namespace stepsim
