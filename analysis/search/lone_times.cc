#include "analysis/search/lone_times.h"

#include <algorithm>
#include <utility>

#include "schedules/plan/axis.h"
#include "sim/base/error.h"
#include "sim/program/program_builder.h"
#include "sim/run/collectives/collective_plan.h"
#include "sim/run/ops/chip_share.h"
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

// The loads of the first of the links that carry most: other collectives of the group have the same
// ones.
LinkLoads busiest(const SimulationResult& result) {
  constexpr double kLeastShare = 0.5;
  constexpr std::size_t kMostLinks = 16;
  double most = 0;
  for (const LinkTotal& total : result.links) most = std::max(most, total.utilization);
  const auto end = static_cast<double>(result.end.since_start.count());
  LinkLoads loads;
  for (const LinkTotal& total : result.links) {
    if (most == 0 || loads.size() == kMostLinks) break;
    if (total.utilization < kLeastShare * most) continue;
    // One less for what the division rounds.
    const auto busy = static_cast<std::int64_t>(total.utilization * end * (1 - 1e-12));
    loads.push_back({.link = total.link.index(), .busy = std::max<std::int64_t>(0, busy - 1)});
  }
  return loads;
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
    const SimulationResult result = simulate(graph, cluster_, {});
    const LibraryCost cost =
        choose_collective(graph, cluster_, CollectiveWorkId(0), GroupId(0)).cost;
    return {.time = result.end.since_start,
            .loads = busiest(result),
            .units = taken_of(cluster_.chip, cost).compute / 1e6};
  } catch (const ConfigError&) {
    return {};  // the group can't run the algorithm, which the plan's own simulation reports
  }
}

}  // namespace stepsim
