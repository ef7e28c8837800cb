#include "schedules/lowering/stages/pass.h"

#include <utility>

namespace stepsim {

std::vector<Stop> stops_of(const Pass& pass, const StageChunk& chunk) {
  std::vector<Stop> stops;
  if (pass.is_forward()) {
    for (const StageUnit& unit : chunk.units) stops.push_back({&unit});
    return stops;
  }
  const auto runs_again = [&](std::size_t i) { return !chunk.units[i].layer->again.empty(); };
  for (std::size_t i = chunk.units.size(); i-- > 0;) {
    if (!runs_again(i) && pass.part != PassPart::kWeightGradients) {
      std::size_t first = i;
      while (first > 0 && runs_again(first - 1)) --first;
      for (; first < i; ++first) stops.push_back({&chunk.units[first], true});
    }
    stops.push_back({&chunk.units[i]});
  }
  return stops;
}

std::vector<Completes> completed_by(const std::vector<PipelineOp>& order, std::size_t chunks) {
  std::vector<Completes> completed(order.size());
  std::vector<Completes> found(chunks);
  for (std::size_t i = order.size(); i-- > 0;) {
    const PipelineOp& op = order[i];
    if (op.kind == PipelineOpKind::kForward) continue;
    const bool fused = op.kind == PipelineOpKind::kForwardBackward;
    Completes& chunk = found[static_cast<std::size_t>(fused ? op.backward_chunk : op.chunk)];
    if (op.kind != PipelineOpKind::kBackwardInput) {
      completed[i].weights = !std::exchange(chunk.weights, true);
    }
    if (op.kind != PipelineOpKind::kBackwardWeight) {
      completed[i].inputs = !std::exchange(chunk.inputs, true);
    }
  }
  return completed;
}

}  // namespace stepsim
