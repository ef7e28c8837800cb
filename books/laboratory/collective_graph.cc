#include "books/laboratory/collective_graph.h"

#include <cmath>
#include <string>
#include <utility>

#include "schedules/plan/axis.h"
#include "sim/program/program_builder.h"

namespace stepsim {

Bytes whole_bytes(double bytes) {
  return Bytes(std::llround(bytes));
}

std::vector<std::uint32_t> all_chips(const Cluster& cluster) {
  return some_chips(0, static_cast<std::uint32_t>(cluster.places.chips.size()));
}

std::vector<std::uint32_t> some_chips(std::uint32_t first, std::uint32_t count,
                                      std::uint32_t stride) {
  std::vector<std::uint32_t> chips(count);
  for (std::uint32_t i = 0; i < count; ++i) chips[i] = first + i * stride;
  return chips;
}

std::vector<std::vector<RankId>> axis_groups(const std::vector<int>& sizes, std::size_t axis) {
  std::uint32_t stride = 1;
  std::uint32_t ranks = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto size = static_cast<std::uint32_t>(sizes[i]);
    if (i < axis) stride *= size;
    ranks *= size;
  }
  const auto size = static_cast<std::uint32_t>(sizes[axis]);
  std::vector<std::vector<RankId>> groups;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (rank / stride % size != 0) continue;
    groups.emplace_back();
    for (std::uint32_t i = 0; i < size; ++i) groups.back().emplace_back(rank + i * stride);
  }
  return groups;
}

Communicator communicator_of(std::string name, std::vector<std::vector<RankId>> groups,
                             std::size_t ranks) {
  Communicator communicator{
      .name = std::move(name), .axis = Axis::kOther, .groups = std::move(groups), .seat_of = {}};
  communicator.seat_of.resize(ranks);
  for (std::uint32_t group = 0; group < communicator.groups.size(); ++group) {
    for (std::uint32_t member = 0; member < communicator.groups[group].size(); ++member) {
      communicator.seat_of[communicator.groups[group][member].index()] = {group, member};
    }
  }
  return communicator;
}

CollectiveWork work_of(CollectiveOp op, Bytes bytes, AlgorithmChoice algorithm) {
  CollectiveWork work;
  work.op = op;
  work.bytes = bytes;
  work.algorithm = algorithm;
  return work;
}

OpGraph collective_graph(const std::vector<std::uint32_t>& chips, CollectiveWork work) {
  std::vector<RankId> all;
  for (std::uint32_t rank = 0; rank < chips.size(); ++rank) all.emplace_back(rank);
  return collectives_graph(chips, {{.work = work, .groups = {all}}});
}

double collective_seconds(const Laboratory& laboratory, const Cluster& cluster,
                          const CollectiveWork& work, Granularity granularity) {
  SimulationOptions options;
  options.granularity = granularity;
  return laboratory.seconds(collective_graph(all_chips(cluster), work), cluster, options);
}

OpGraph collectives_graph(const std::vector<std::uint32_t>& chips,
                          const std::vector<GroupedCollective>& collectives) {
  OpGraph graph;
  graph.path_labels = {"compute"};
  ProgramBuilder builder("rank");
  builder.add_stream("compute", true);
  for (const GroupedCollective& collective : collectives) {
    const auto index = static_cast<std::uint32_t>(graph.communicators.size());
    const std::string name(name_of(collective.work.op));
    graph.communicators.push_back(
        communicator_of(name + " " + std::to_string(index), collective.groups, chips.size()));
    graph.collective_works.push_back(collective.work);
    graph.collective_works.back().communicator = CommunicatorId(index);
    graph.names.push_back(name);
    OpDraft op{.stream = builder.add_stream(name + " " + std::to_string(index))};
    op.kind = OpKind::kCollective;
    op.work = index;
    op.label.name = index;
    builder.add(std::move(op));
  }
  graph.programs.push_back(std::move(builder).build());
  for (const std::uint32_t chip : chips) {
    RankData rank;
    rank.chip = chip;
    graph.ranks.push_back(rank);
  }
  return graph;
}

}  // namespace stepsim
