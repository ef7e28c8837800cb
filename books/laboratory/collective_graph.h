// Graphs that contain only collectives. There is one rank on each chip.
//
//   // All-gather of 64 MiB over all chips of a ring of 16.
//   const OpGraph graph =
//       collective_graph(all_chips(cluster), work_of(CollectiveOp::kAllGather, 64_MiB));

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "books/laboratory/laboratory.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"

namespace stepsim {

Bytes whole_bytes(double bytes);  // rounds to the nearest

std::vector<std::uint32_t> all_chips(const Cluster& cluster);

// Returns `count` chips from `first` on, at distance `stride`.
std::vector<std::uint32_t> some_chips(std::uint32_t first, std::uint32_t count,
                                      std::uint32_t stride = 1);

// Returns the groups along one axis of a box of ranks. The innermost axis is the first of `sizes`.
std::vector<std::vector<RankId>> axis_groups(const std::vector<int>& sizes, std::size_t axis);

// Bytes: the larger of one rank's send and receive buffer.
CollectiveWork work_of(CollectiveOp op, Bytes bytes,
                       AlgorithmChoice algorithm = AlgorithmChoice::kAuto);

// Returns a graph of one collective over all ranks. Rank r sits on chips[r]. Sets
// work.communicator.
OpGraph collective_graph(const std::vector<std::uint32_t>& chips, CollectiveWork work);

// Returns how long the collective takes alone, over all chips of the cluster.
double collective_seconds(const Laboratory& laboratory, const Cluster& cluster,
                          const CollectiveWork& work,
                          Granularity granularity = Granularity::kPipelined);

// Several collectives that start together, each on its own stream and communicator. Every rank sits
// on one chip of `chips` and takes part in all of them. groups[i] are the groups of work i; each
// contains every rank once over all groups.
struct GroupedCollective {
  CollectiveWork work{};
  std::vector<std::vector<RankId>> groups{};
};
OpGraph collectives_graph(const std::vector<std::uint32_t>& chips,
                          const std::vector<GroupedCollective>& collectives);

// Returns a communicator of these groups. Each rank is in at most one of them.
Communicator communicator_of(std::string name, std::vector<std::vector<RankId>> groups,
                             std::size_t ranks);

}  // namespace stepsim
