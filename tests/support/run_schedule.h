// Runs a pipeline schedule alone through simulate(): one program per rank, kernels of given times,
// messages of no bytes over links of a given latency.
//
// Streams are as in lowering: compute, and one for each combination of send or receive, peer, and
// activation or gradient (and boundary, if shares_ways()). The messages of a fused op are one batch
// at its start and one at its end.

#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "sim/program/graph_by_hand.h"
#include "sim/run/simulate.h"
#include "sim/run/simulation_result.h"
#include "topology/small_clusters.h"

namespace stepsim {

class RunnableSchedule {
 public:
  // One unit of `costs` is a millisecond.
  RunnableSchedule(const PipelineSchedule& schedule, const PipelineCosts& costs, bool eager)
      : schedule_(schedule),
        costs_(costs),
        eager_(eager),
        hand_(static_cast<std::uint32_t>(schedule.size()), ranks_of(schedule)),
        all_(hand_.communicator({}, GraphByHand::kMessages)) {
    for (rank_ = 0; rank_ < schedule.size(); ++rank_) {
      for (const PipelineOp& op : schedule.ranks[index()]) add(op);
    }
  }

  SimulationResult run() {
    const OpGraph graph = hand_.build();
    // Two links a message: half of the send time each.
    const Cluster cluster =
        one_node(schedule_.size(), Bandwidth(1e9), milliseconds(costs_.send) / 2);
    return simulate(graph, cluster, {});
  }

  static Duration milliseconds(std::int64_t count) {
    return count * Duration(std::chrono::milliseconds(1));
  }

 private:
  static std::vector<std::uint32_t> ranks_of(const PipelineSchedule& schedule) {
    std::vector<std::uint32_t> ranks;
    for (const auto& order : schedule.ranks) {
      ranks.push_back(static_cast<std::uint32_t>(ranks.size()));
      static_cast<void>(order);
    }
    return ranks;
  }
  std::uint32_t index() const { return static_cast<std::uint32_t>(rank_); }

  // A pass over a chunk, its neighbour on the way in or out, and the message between them.
  struct Half {
    std::int32_t peer = 0;
    Message message;
  };
  // Adds nothing at the ends of the pipeline, or if the neighbour is on the same rank.
  void add_half(std::vector<Half>& batch, bool is_send, MessageKind kind, std::int32_t microbatch,
                std::int32_t chunk) {
    const std::int32_t stage = stage_of(schedule_, rank_, chunk);
    const bool upwards = is_send == (kind == MessageKind::kActivation);
    const std::int32_t other = upwards ? stage + 1 : stage - 1;
    if (other < 0 || other == stage_count(schedule_)) return;
    const std::int32_t peer = rank_of(schedule_, microbatch, other);
    if (peer == rank_) return;
    batch.push_back({peer,
                     {.is_send = is_send,
                      .kind = kind,
                      .eager = eager_,
                      .communicator = all_,
                      .peer = static_cast<std::uint32_t>(peer),
                      .microbatch = microbatch,
                      .boundary = std::min(stage, other),
                      .bytes = {}}});
  }

  // Posts one messages op on the stream of its direction, peers and kinds.
  std::vector<Dependency> post(const std::vector<Half>& batch, std::vector<Dependency> needs = {}) {
    if (batch.empty()) return {};
    std::string name = std::to_string(rank_) + (batch[0].message.is_send ? " send" : " receive");
    std::vector<Message> messages;
    for (const Half& half : batch) {
      name += (half.message.kind == MessageKind::kActivation ? " activation " : " gradient ") +
              std::to_string(half.peer);
      if (shares_ways(schedule_) && batch.size() == 1) {
        name += " boundary " + std::to_string(half.message.boundary);
      }
      messages.push_back(half.message);
    }
    const auto [stream, added] = streams_.try_emplace(name);
    if (added) stream->second = hand_.stream(index(), name);
    return {after(hand_.messages(index(), stream->second, messages, std::move(needs)))};
  }

  void add(const PipelineOp& op) {
    const bool is_fused = op.kind == PipelineOpKind::kForwardBackward;
    std::vector<Half> receives;
    std::vector<Half> sends;
    const auto pass = [&](MessageKind kind, std::int32_t microbatch, std::int32_t chunk) {
      add_half(receives, false, kind, microbatch, chunk);
      add_half(sends, true, kind, microbatch, chunk);
    };
    if (is_fused || op.kind == PipelineOpKind::kForward) {
      pass(MessageKind::kActivation, op.microbatch, op.chunk);
    }
    if (is_fused) {
      pass(MessageKind::kGradient, op.backward_microbatch, op.backward_chunk);
    } else if (op.kind == PipelineOpKind::kBackward || op.kind == PipelineOpKind::kBackwardInput) {
      pass(MessageKind::kGradient, op.microbatch, op.chunk);
    }
    const OpRef computed =
        hand_.compute_for(index(), milliseconds(time_of(op, costs_)), post(receives));
    post(sends, {after(computed)});
  }

  const PipelineSchedule& schedule_;
  PipelineCosts costs_;
  bool eager_;
  GraphByHand hand_;
  CommunicatorId all_;
  std::int32_t rank_ = 0;  // the rank whose program is written
  std::map<std::string, StreamId> streams_;
};

inline SimulationResult run_schedule(const PipelineSchedule& schedule, const PipelineCosts& costs,
                                     bool eager = false) {
  return RunnableSchedule(schedule, costs, eager).run();
}

}  // namespace stepsim
