#include "analysis/search/lone_times.h"

#include "schedules/plan/axis.h"
#include "sim/base/error.h"
#include "sim/program/program_builder.h"
#include "sim/run/simulate.h"

namespace stepsim {

GroupNumber LoneTimes::number_of(const std::vector<std::uint32_t>& chips) {
  const std::scoped_lock lock(mutex_);
  const auto [place, added] = numbers_.try_emplace(chips, static_cast<GroupNumber>(groups_.size()));
  if (added) groups_.push_back(chips);
  return place->second;
}

Duration LoneTimes::of(const Work& work, GroupNumber group) {
  const Key key{work.op, work.bytes, work.type, work.algorithm, group};
  std::vector<std::uint32_t> chips;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = times_.find(key); found != times_.end()) return found->second;
    chips = groups_[group];
  }
  const Duration time = simulated(work, chips);
  const std::scoped_lock lock(mutex_);
  times_.emplace(key, time);
  return time;
}

Duration LoneTimes::simulated(const Work& work, const std::vector<std::uint32_t>& chips) const {
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
    return simulate(graph, cluster_, {}).end.since_start;
  } catch (const ConfigError&) {
    return {};  // the group can't run the algorithm, which the plan's own simulation reports
  }
}

}  // namespace stepsim
