// Runs a pipeline schedule by itself through simulate(): one rank a stage, kernels of given times,
// messages of no bytes over links of a given latency.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/experiments/graph_by_hand.h"
#include "analysis/experiments/small_clusters.h"
#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

struct ScheduleCosts {
  Duration forward{};
  Duration backward{};  // input and weight gradient
  Duration send{};
  bool eager = false;
};

// Streams as in lowering: compute, and one for each of send and receive, activation and gradient.
inline SimulationResult run_schedule(const PipelineSchedule& schedule, const ScheduleCosts& costs) {
  const auto stages = static_cast<std::uint32_t>(schedule.ranks.size());
  std::vector<std::uint32_t> stage_of(stages);
  for (std::uint32_t stage = 0; stage < stages; ++stage) stage_of[stage] = stage;
  GraphByHand hand(stages, stage_of);
  const CommunicatorId all = hand.communicator({}, Axis::kPipeline);
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    const StreamId receive[] = {hand.stream(stage, "receive activation"),
                                hand.stream(stage, "receive gradient")};
    const StreamId send[] = {hand.stream(stage, "send activation"),
                             hand.stream(stage, "send gradient")};
    for (const PipelineOp& op : schedule.ranks[stage]) {
      const bool forward = op.kind == PipelineOpKind::kForward;
      const auto kind = forward ? MessageKind::kActivation : MessageKind::kGradient;
      const auto half = [&](bool is_send, std::uint32_t peer) {
        return Message{.is_send = is_send,
                       .kind = kind,
                       .eager = costs.eager,
                       .communicator = all,
                       .peer = peer,
                       .microbatch = op.microbatch,
                       .boundary = static_cast<std::int32_t>(std::min(stage, peer)),
                       .bytes = {}};
      };
      const bool receives = forward ? stage > 0 : stage + 1 < stages;
      const bool sends = forward ? stage + 1 < stages : stage > 0;
      std::vector<Dependency> needs;
      if (receives) {
        needs.push_back(after(hand.messages(stage, receive[forward ? 0 : 1],
                                            {half(false, forward ? stage - 1 : stage + 1)})));
      }
      const OpRef computed =
          hand.compute_for(stage, forward ? costs.forward : costs.backward, std::move(needs));
      if (sends) {
        hand.messages(stage, send[forward ? 0 : 1], {half(true, forward ? stage + 1 : stage - 1)},
                      {after(computed)});
      }
    }
  }
  const OpGraph graph = hand.build();
  // Two links a message: half of the send time each.
  return simulate(graph, one_node(static_cast<int>(stages), Bandwidth(1e9), costs.send / 2), {});
}

}  // namespace stepsim
