#include "schedules/lowering/recompute.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace stepsim {

Layer recompute_selectively(Layer layer) {
  for (LayerOp& op : layer.ops) {
    if (op.saved_cheaply == Bytes(0)) continue;
    op.saved -= op.saved_cheaply;
    op.backward_workspace += op.saved_cheaply;
    op.input_gradient.insert(op.input_gradient.begin(), op.forward.begin(), op.forward.end());
  }
  return layer;
}

namespace {

LayerStep& first_compute(std::vector<LayerStep>& steps) {
  return *std::ranges::find(steps, LayerStep::Kind::kCompute, &LayerStep::kind);
}

}  // namespace

LoweredLayer recompute_fully(LoweredLayer layer) {
  std::vector<LayerStep> again = layer.forward;
  first_compute(again).kept -= layer.input;
  for (LayerStep& step : again) step.recomputes = true;
  for (LayerStep& step : layer.forward) step.kept = Bytes(0);
  first_compute(layer.forward).kept = layer.input;
  layer.backward.insert(layer.backward.begin(), again.begin(), again.end());
  layer.split_backward.insert(layer.split_backward.begin(), std::make_move_iterator(again.begin()),
                              std::make_move_iterator(again.end()));
  return layer;
}

}  // namespace stepsim
