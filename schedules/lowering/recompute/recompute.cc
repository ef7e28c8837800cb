#include "schedules/lowering/recompute/recompute.h"

#include <algorithm>
#include <utility>

namespace stepsim {
namespace {

LayerStep& first_compute(std::vector<LayerStep>& steps) {
  return *std::ranges::find(steps, LayerStep::Kind::kCompute, &LayerStep::kind);
}

// Returns the repeated forward with the bytes it now keeps. `held` and LoweredLayer::lent, which
// belongs to the step that keeps most, were kept all along.
std::vector<LayerStep> forward_again(const LoweredLayer& layer, Bytes held) {
  std::vector<LayerStep> again = layer.forward;
  first_compute(again).kept -= held;
  std::ranges::max_element(again, {}, &LayerStep::kept)->kept -= layer.lent;
  for (LayerStep& step : again) step.recomputes = true;
  return again;
}

}  // namespace

BlockRecompute block_recompute(const RecomputePlan& plan, std::int64_t index, std::int64_t count) {
  if (plan.kind == Recompute::kNone) return BlockRecompute::kNone;
  const std::int64_t recomputed = std::min(count, plan.layers.value_or(count));
  if (index >= recomputed) return BlockRecompute::kNone;
  const std::int64_t in_group = index % plan.block;
  const std::int64_t size = std::min(plan.block, recomputed - (index - in_group));
  if (size == 1) return BlockRecompute::kAlone;
  if (in_group == 0) return BlockRecompute::kFirst;
  return in_group == size - 1 ? BlockRecompute::kLast : BlockRecompute::kInside;
}

LoweredLayer recompute_fully(LoweredLayer layer, BlockRecompute role) {
  const bool keeps_input = role == BlockRecompute::kAlone || role == BlockRecompute::kFirst;
  const Bytes held = keeps_input ? layer.input : Bytes(0);
  std::vector<LayerStep> again = forward_again(layer, held);
  layer.reads_weights_again = false;
  for (LayerStep& step : layer.forward) step.kept = Bytes(0);
  first_compute(layer.forward).kept = held + layer.lent;
  if (has_own_visit(role)) {
    layer.again = std::move(again);
    return layer;
  }
  layer.backward.insert(layer.backward.begin(), again.begin(), again.end());
  layer.split_backward.insert(layer.split_backward.begin(), again.begin(), again.end());
  return layer;
}

}  // namespace stepsim
