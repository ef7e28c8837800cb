#include "experiment/passes/lone_times.h"

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "schedules/plan/axis.h"
#include "sim/base/error.h"
#include "sim/network/flow_network.h"
#include "sim/program/program_builder.h"
#include "sim/run/collectives/collective_plan.h"
#include "sim/run/ops/exact_bytes.h"
#include "sim/run/simulate.h"

namespace stepsim {

GroupNumber LoneTimes::number_of(const std::vector<std::uint32_t>& chips) {
  const std::scoped_lock lock(mutex_);
  const auto [place, added] = numbers_.try_emplace(chips, static_cast<GroupNumber>(groups_.size()));
  if (added) groups_.push_back(chips);
  return place->second;
}

void add_loads(const LinkLoads& more, std::int64_t times, LinkLoads& sum) {
  if (times == 0) return;
  for (const LinkLoad& load : more) {
    auto place = std::ranges::lower_bound(sum, load.link, {}, &LinkLoad::link);
    if (place == sum.end() || place->link != load.link) place = sum.insert(place, {load.link, 0});
    place->busy += times * load.busy;
  }
}

namespace {

constexpr double kLeastShare = 0.5;  // of the utilization of the busiest link
constexpr std::size_t kMostLinks = 16;

// The loads of the first of the links that carry most: other collectives of the group have the same
// ones. `links`: in order; links that carry nothing may be missing.
LinkLoads busiest(std::span<const LinkTotal> links, Time end) {
  double most = 0;
  for (const LinkTotal& total : links) most = std::max(most, total.utilization);
  const auto picoseconds = static_cast<double>(end.since_start.count());
  LinkLoads loads;
  for (const LinkTotal& total : links) {
    if (most == 0 || loads.size() == kMostLinks) break;
    if (total.utilization < kLeastShare * most) continue;
    // One less for what the division rounds.
    const auto busy = static_cast<std::int64_t>(total.utilization * picoseconds * (1 - 1e-12));
    loads.push_back({.link = total.link.index(), .busy = std::max<std::int64_t>(0, busy - 1)});
  }
  return loads;
}

// Returns the end of a transfer that is alone on the network, which has its links only: others of a
// large cluster cost more than the transfer.
Time end_alone(const CollectivePlan& plan, const Fabric& fabric) {
  Fabric own;
  const NodeId node = own.add(NodeKind::kSwitch, "");
  std::vector<LinkUse> uses;
  for (const LinkUse& use : plan.uses) {
    uses.push_back({own.connect_one_way(node, node, fabric.bandwidth(use.link), {}), use.weight});
  }
  const std::unique_ptr<Network> network = make_flow_network(own);
  network->start(Time{}, TransferId(0),
                 {.bytes = plan.bytes, .latency = plan.latency, .uses = uses});
  std::vector<TransferId> done;
  Time end;
  for (network->settle(end); done.empty(); network->settle(end)) {
    end = *network->next_event();
    network->advance(end, done);
  }
  return end;
}

// Returns what the links that a transfer uses carry, in order of links, as simulate() does.
std::vector<LinkTotal> totals_alone(const CollectivePlan& plan, const Fabric& fabric, Time end) {
  std::map<LinkId, ExactBytes> bytes;  // over links and groups
  std::vector<LinkId> links;
  for (const LinkUse& use : plan.uses) {
    bytes[use.link] += ExactBytes::of(plan.bytes, use.weight);
    if (use.link.index() < fabric.links().size()) {
      links.push_back(use.link);
    } else {
      const auto group = static_cast<std::uint32_t>(use.link.index() - fabric.links().size());
      const std::vector<LinkId>& of_group = fabric.group(LinkGroupId(group)).links;
      links.insert(links.end(), of_group.begin(), of_group.end());
    }
  }
  std::ranges::sort(links);
  links.erase(std::unique(links.begin(), links.end()), links.end());
  const auto of = [&](LinkId link) {
    const auto found = bytes.find(link);
    return found == bytes.end() ? ExactBytes() : found->second;
  };
  std::map<LinkGroupId, ExactBytes> named;  // bytes over links of a group that are named alone
  for (const LinkId link : links) {
    if (const auto group = fabric.group_of(link)) named[*group] += of(link);
  }
  const double seconds = to_seconds(end.since_start);
  std::vector<LinkTotal> totals;
  for (const LinkId link : links) {
    double over = of(link).value();
    if (const auto id = fabric.group_of(link)) {
      const LinkGroup& group = fabric.group(*id);
      const double spread = of(fabric.link_id(*id)).value() -
                            named[*id].value() / static_cast<double>(group.links.size());
      over += spread * (fabric.link(link).bandwidth.value() / group.bandwidth.value());
    }
    const double bandwidth = fabric.link(link).bandwidth.value();
    totals.push_back({.link = link,
                      .bytes = over,
                      .utilization = seconds > 0 ? over / (bandwidth * seconds) : 0});
  }
  return totals;
}

}  // namespace

const LoneTimes::Lone& LoneTimes::of(const Work& work, GroupNumber group) {
  const Key key{work.op, work.bytes, work.type, work.algorithm, group};
  std::vector<std::uint32_t> chips;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = times_.find(key); found != times_.end()) return found->second;
    chips = groups_[group];
  }
  Lone lone = simulated(work, chips);
  const std::scoped_lock lock(mutex_);
  return times_.try_emplace(key, std::move(lone)).first->second;
}

LoneTimes::Lone LoneTimes::simulated(const Work& work,
                                     const std::vector<std::uint32_t>& chips) const {
  if (chips.size() < 2 || work.bytes == Bytes(0)) return {};
  OpGraph graph;
  graph.path_labels = {"compute"};
  graph.names = {"collective"};
  graph.axes = axis_names();
  Communicator group{.name = "group", .axis = Axis::kOther, .groups = {{}}, .seat_of = {}};
  for (std::uint32_t member = 0; member < chips.size(); ++member) {
    group.groups.front().emplace_back(member);
    group.seat_of.push_back({.group = 0, .member = member});
    RankData rank;
    rank.chip = chips[member];
    graph.ranks.push_back(rank);
  }
  graph.communicators.push_back(std::move(group));
  graph.collective_works.push_back({.communicator = CommunicatorId(0),
                                    .op = work.op,
                                    .bytes = work.bytes,
                                    .type = work.type,
                                    .algorithm = work.algorithm});
  ProgramBuilder builder("member");
  builder.add_stream("compute", true);
  OpDraft op{.stream = builder.add_stream("collective"), .kind = OpKind::kCollective};
  op.axis = Axis::kOther;
  builder.add(std::move(op));
  graph.programs.push_back(std::move(builder).build());
  try {
    const SimulationOptions options;
    CollectivePlans plans(graph, cluster_, options.granularity, options.fidelity);
    const CollectivePlan plan = plans.plan_of(CollectiveWorkId(0), GroupId(0));
    const double units = plan.taken.compute / 1e6;
    if (plan.at_once) {
      const Time end = end_alone(plan, cluster_.fabric);
      return {.time = end.since_start,
              .loads = busiest(totals_alone(plan, cluster_.fabric, end), end),
              .units = units};
    }
    const SimulationResult result = simulate(graph, cluster_, options);
    return {
        .time = result.end.since_start, .loads = busiest(result.links, result.end), .units = units};
  } catch (const ConfigError&) {
    return {};  // the group can't run the algorithm, which the plan's own simulation reports
  }
}

}  // namespace stepsim
