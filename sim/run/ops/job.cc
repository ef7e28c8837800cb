#include "sim/run/ops/job.h"

#include <algorithm>

namespace stepsim {
namespace {

// Returns the groups of one of each class, with each simulated member once.
Communicator folded(const Communicator& whole, const Classes<GroupId>& groups,
                    const Classes<RankId>& ranks) {
  Communicator result{.name = whole.name, .axis = whole.axis, .groups = {}, .seat_of = {}};
  result.seat_of.resize(ranks.size());
  for (std::uint32_t number = 0; number < groups.size(); ++number) {
    std::vector<RankId>& members = result.groups.emplace_back();
    for (const RankId rank : whole.groups[groups.representatives[number].index()]) {
      members.emplace_back(ranks.class_of[rank.index()]);
    }
    std::ranges::sort(members);
    members.erase(std::unique(members.begin(), members.end()), members.end());
    for (std::uint32_t member = 0; member < members.size(); ++member) {
      result.seat_of[members[member].index()] = {number, member};
    }
  }
  return result;
}

}  // namespace

Job::Job(const OpGraph& graph, const Quotient& quotient)
    : graph_(graph),
      quotient_(&quotient),
      ranks_(&own_ranks_),
      communicators_(&own_communicators_) {
  for (const RankId rank : quotient.ranks.representatives) {
    own_ranks_.push_back(graph.ranks[rank.index()]);
  }
  for (std::size_t c = 0; c < graph.communicators.size(); ++c) {
    own_communicators_.push_back(
        folded(graph.communicators[c], quotient.groups[c], quotient.ranks));
  }
}

}  // namespace stepsim
