// GraphByHand writes an op graph op by op, for studies and tests: one program per rank,
// communicators as lists of ranks, kernels of a given size. Rank r sits on chip r.
//
//   GraphByHand hand(2);
//   const CommunicatorId all = hand.communicator();
//   for (const std::uint32_t rank : {0U, 1U}) {
//     const OpRef made = hand.compute(rank, Flops(1e12));
//     hand.collective(rank, hand.stream(rank, "sums"), {.communicator = all, .bytes = 1_GB},
//                     {after(made)});
//   }
//   simulate(hand.build(), cluster, {});
//
// Communication counts for one of three axes, by the kind of op, unless a communicator names
// another.

#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/program/op_graph.h"
#include "sim/program/program_builder.h"

namespace stepsim {

class GraphByHand {
 public:
  static constexpr Axis kCollectives{0};
  static constexpr Axis kMessages{1};
  static constexpr Axis kHost{2};

  // Rank r is on pipeline stage `stages[r]` (0 where not given).
  explicit GraphByHand(std::uint32_t ranks, const std::vector<std::uint32_t>& stages = {}) {
    graph_.path_labels = {"compute"};
    graph_.axes = {"collectives", "messages", "host"};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      builders_.emplace_back("rank " + std::to_string(rank));
      compute_.push_back(builders_.back().add_stream("compute", true));
      RankData data{.program = ProgramId(rank), .chip = rank};
      if (rank < stages.size()) data.pp = stages[rank];
      graph_.pipeline_stages = std::max(graph_.pipeline_stages, data.pp + 1);
      graph_.ranks.push_back(data);
    }
  }

  OpGraph& graph() { return graph_; }
  ProgramBuilder& program(std::uint32_t rank) { return builders_[rank]; }
  StreamId compute_stream(std::uint32_t rank) const { return compute_[rank]; }
  StreamId stream(std::uint32_t rank, std::string name) {
    return builders_[rank].add_stream(std::move(name));
  }

  // Returns a communicator with one group of these ranks; of all ranks if none are given.
  CommunicatorId communicator(std::vector<std::uint32_t> ranks = {}, Axis axis = kCollectives) {
    Communicator communicator{.name = "group", .axis = axis, .groups = {{}}, .seat_of = {}};
    if (ranks.empty()) {
      for (std::uint32_t r = 0; r < graph_.ranks.size(); ++r) ranks.push_back(r);
    }
    communicator.seat_of.resize(graph_.ranks.size());
    for (std::uint32_t member = 0; member < ranks.size(); ++member) {
      communicator.groups[0].emplace_back(ranks[member]);
      communicator.seat_of[ranks[member]] = {0, member};
    }
    graph_.communicators.push_back(std::move(communicator));
    return CommunicatorId(static_cast<std::uint32_t>(graph_.communicators.size() - 1));
  }

  // Adds a kernel with this many FLOPs and bytes.
  OpRef compute(std::uint32_t rank, Flops flops, std::vector<Dependency> dependencies = {},
                Bytes bytes = {}) {
    graph_.compute_works.push_back(
        {.kernels = {{.name = "kernel", .flops = flops, .read = bytes}}, .path_label = 0});
    OpDraft op{.stream = compute_[rank]};
    op.work = static_cast<std::uint32_t>(graph_.compute_works.size() - 1);
    op.dependencies = std::move(dependencies);
    return builders_[rank].add(std::move(op));
  }
  // Adds a kernel that takes `time` on a chip of 1 PFLOP/s, such as ideal_chip() of
  // topology/small_clusters.h.
  OpRef compute_for(std::uint32_t rank, Duration time, std::vector<Dependency> dependencies = {}) {
    return compute(rank, Flops(to_seconds(time) * 1e15), std::move(dependencies));
  }

  OpRef collective(std::uint32_t rank, StreamId stream, CollectiveWork work,
                   std::vector<Dependency> dependencies = {}) {
    const auto found = std::ranges::find(graph_.collective_works, work);
    OpDraft op{.stream = stream, .kind = OpKind::kCollective};
    op.axis = graph_.communicators[work.communicator.index()].axis;
    op.work = static_cast<std::uint32_t>(found - graph_.collective_works.begin());
    if (found == graph_.collective_works.end()) graph_.collective_works.push_back(work);
    op.dependencies = std::move(dependencies);
    return builders_[rank].add(std::move(op));
  }

  OpRef messages(std::uint32_t rank, StreamId stream, std::vector<Message> batch,
                 std::vector<Dependency> dependencies = {}) {
    OpDraft op{.stream = stream, .kind = OpKind::kMessages, .axis = kMessages};
    op.work = static_cast<std::uint32_t>(graph_.messages.size());
    op.work_count = static_cast<std::uint32_t>(batch.size());
    graph_.messages.insert(graph_.messages.end(), batch.begin(), batch.end());
    op.dependencies = std::move(dependencies);
    return builders_[rank].add(std::move(op));
  }

  OpRef host(std::uint32_t rank, StreamId stream, const HostWork& work,
             std::vector<Dependency> dependencies = {}) {
    OpDraft op{.stream = stream, .kind = OpKind::kHost, .axis = kHost};
    op.work = static_cast<std::uint32_t>(graph_.host_works.size());
    graph_.host_works.push_back(work);
    op.dependencies = std::move(dependencies);
    return builders_[rank].add(std::move(op));
  }

  OpGraph build() {
    for (ProgramBuilder& builder : builders_) {
      graph_.programs.push_back(std::move(builder).build());
    }
    return std::move(graph_);
  }

 private:
  OpGraph graph_;
  std::vector<ProgramBuilder> builders_;
  std::vector<StreamId> compute_;
};

}  // namespace stepsim
