#include "traces/formats/collective_facts.h"

#include "sim/collectives/bus_factor.h"

namespace stepsim {
namespace {

// Returns the name of the link of the transfer that is full first.
std::string limiting_link(const CollectivePlan& plan, const Fabric& fabric) {
  const LinkUse* slowest = nullptr;
  for (const LinkUse& use : plan.uses) {
    if (slowest == nullptr || fabric.width(use) < fabric.width(*slowest)) slowest = &use;
  }
  if (slowest == nullptr) return "";
  if (slowest->link.index() < fabric.links().size()) return fabric.link_name(slowest->link);
  const auto group = slowest->link.index() - fabric.links().size();
  return fabric.link_name(fabric.groups()[group].links.front()) + " and those beside it";
}

}  // namespace

CollectiveFacts::CollectiveFacts(const OpGraph& graph, const Cluster& cluster)
    : graph_(graph),
      cluster_(cluster),
      plans_(graph, cluster, Granularity::kPipelined, Fidelity::kFlow) {}

const CollectiveFact& CollectiveFacts::of(CollectiveWorkId id, GroupId group) {
  const auto [place, is_new] = facts_.try_emplace({id.index(), group.index()});
  CollectiveFact& fact = place->second;
  if (!is_new) return fact;
  const CollectiveWork& work = graph_.collective_works[id.index()];
  const auto& members = graph_.communicators[work.communicator.index()].groups[group.index()];
  fact.ranks = static_cast<std::uint32_t>(members.size());
  fact.bus_factor = bus_factor(work.op, fact.ranks);
  fact.algorithm = name_of(work.algorithm);
  if (fact.ranks < 2) return fact;
  const CollectiveWay way = plans_.chosen_for(id, group).way;
  fact.algorithm = name_of(way.algorithm);
  if (!way.protocol.empty()) fact.algorithm += " " + way.protocol;
  fact.limiting_link = limiting_link(plans_.plan_of(id, group), cluster_.fabric);
  return fact;
}

}  // namespace stepsim
