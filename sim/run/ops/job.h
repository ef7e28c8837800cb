// Job is an op graph as it is simulated: all of its ranks, or one rank of each class of a Quotient.
// A simulated rank has the program and the chip of its representative and stands for count() ranks.
// Simulated ranks, and simulated groups of a communicator, have numbers of their own; where nothing
// is folded, they are those of the graph.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/folding/quotient.h"
#include "sim/program/op_graph.h"

namespace stepsim {

class Job {
 public:
  // Every rank. The graph must outlive the job.
  explicit Job(const OpGraph& graph)
      : graph_(graph), ranks_(&graph.ranks), communicators_(&graph.communicators) {}

  // One rank of each class. The graph and the quotient must outlive the job.
  Job(const OpGraph& graph, const Quotient& quotient);

  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const OpGraph& graph() const { return graph_; }  // programs and works; and all of its ranks
  const Quotient* quotient() const { return quotient_; }  // null: nothing is folded

  // Simulated ranks. A group has each simulated rank once that stands for members of it.
  const std::vector<RankData>& ranks() const { return *ranks_; }
  const std::vector<Communicator>& communicators() const { return *communicators_; }
  const Program& program(RankId rank) const {
    return graph_.programs[ranks()[rank.index()].program.index()];
  }

  std::uint32_t count(RankId rank) const {
    return quotient_ == nullptr ? 1 : quotient_->ranks.sizes[rank.index()];
  }
  RankId representative(RankId rank) const {
    return quotient_ == nullptr ? rank : quotient_->ranks.representatives[rank.index()];
  }
  RankId simulated(RankId of_graph) const {
    return quotient_ == nullptr ? of_graph : RankId(quotient_->ranks.class_of[of_graph.index()]);
  }

  std::uint32_t count(CommunicatorId communicator, GroupId group) const {
    return quotient_ == nullptr ? 1 : groups(communicator).sizes[group.index()];
  }
  GroupId representative(CommunicatorId communicator, GroupId group) const {
    return quotient_ == nullptr ? group : groups(communicator).representatives[group.index()];
  }
  // Members of a group of the graph that the simulated one stands for.
  std::uint32_t members(CommunicatorId communicator, GroupId group) const {
    const Communicator& all = graph_.communicators[communicator.index()];
    return static_cast<std::uint32_t>(
        all.groups[representative(communicator, group).index()].size());
  }

 private:
  const Classes<GroupId>& groups(CommunicatorId communicator) const {
    return quotient_->groups[communicator.index()];
  }

  const OpGraph& graph_;
  const Quotient* quotient_ = nullptr;
  std::vector<RankData> own_ranks_;
  std::vector<Communicator> own_communicators_;
  const std::vector<RankData>* ranks_;
  const std::vector<Communicator>* communicators_;
};

}  // namespace stepsim
