#include "experiment/passes/pass_cost.h"

#include <algorithm>

namespace stepsim {

PassCost then(const PassCost& first, const PassCost& second) {
  PassCost both = first;
  both.compute += second.compute;
  both.dense += second.dense;
  if (second.computes) {
    both.chain += first.tail + second.chain;
    both.tail = second.tail;
    both.computes = true;
  } else {
    both.tail += second.tail;
  }
  both.peak = std::max(first.peak, first.kept + second.peak);
  both.kept += second.kept;
  return both;
}

LayerPart part_of(PassPart part) {
  switch (part) {
    case PassPart::kForward:
      return LayerPart::kForward;
    case PassPart::kInputGradients:
      return LayerPart::kInput;
    case PassPart::kWeightGradients:
      return LayerPart::kWeight;
    case PassPart::kBackward:
    case PassPart::kBackwardByParts:
      break;
  }
  return LayerPart::kBackward;
}

LayerCosts::RunTime LayerCosts::time_of_step(const LayerStep& step) {
  const auto [place, added] = compute_.try_emplace(&step);
  if (!added) return place->second;
  RunTime& run = place->second;
  double arithmetic_s = 0;
  for (const Kernel& kernel : step.kernels) {
    const KernelTime time = time_of(kernel, chip_);
    run.time += time.total;
    // A recorded time is that of a trace, whatever runs beside it.
    if (!time.memory_bound() && !kernel.recorded) arithmetic_s += time.compute_s;
  }
  run.is_dense = arithmetic_s >= kDense * to_seconds(run.time);
  return run;
}

PassCost LayerCosts::cost(const std::vector<LayerStep>& steps, std::optional<bool> weight_gradients,
                          const LaneGroups& groups) {
  PassCost sum;
  for (const LayerStep& step : steps) {
    if (weight_gradients && step.weight_gradient != *weight_gradients) continue;
    PassCost one;
    if (step.kind == LayerStep::Kind::kCompute) {
      const auto& [time, is_dense] = time_of_step(step);
      one = {.compute = time.count(),
             .dense = is_dense ? time.count() : 0,
             .chain = time.count(),
             .computes = true,
             .kept = (step.kept - step.let_go).value()};
      // Memory is looked at when time moves on, so an op that takes none has no peak of its own.
      if (time > Duration()) one.peak = (step.kept + step.workspace).value();
    } else if (step.kind == LayerStep::Kind::kCollective && !step.byte_matrix) {
      const auto& group = groups[static_cast<std::size_t>(step.lane)];
      if (!group) continue;
      one.tail = times_
                     .of({.op = step.collective,
                          .bytes = step.bytes,
                          .type = step.type,
                          .algorithm = step.algorithm},
                         *group)
                     .time.count();
    }
    sum = then(sum, one);
  }
  return sum;
}

LayerCosts::Parts LayerCosts::of(const LoweredLayer& layer, const LaneGroups& groups) {
  const std::scoped_lock lock(mutex_);
  const auto [place, added] = costs_.try_emplace({&layer, groups});
  if (!added) return place->second;
  Parts& parts = place->second;
  const auto at = [&parts](LayerPart part) -> PassCost& {
    return parts[static_cast<std::size_t>(part)];
  };
  at(LayerPart::kForward) = cost(layer.forward, std::nullopt, groups);
  at(LayerPart::kBackward) = cost(layer.backward, std::nullopt, groups);
  at(LayerPart::kInput) = cost(layer.split_backward, false, groups);
  at(LayerPart::kWeight) = cost(layer.split_backward, true, groups);
  at(LayerPart::kAgain) = cost(layer.again, std::nullopt, groups);
  return parts;
}

}  // namespace stepsim
