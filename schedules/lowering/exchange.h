// OpExchange is what an op of a layer sends and receives on behalf of context or expert
// parallelism. Files that know an axis make them (context.h, expert.h); lower_tensor() puts them
// into the forward and into both forms of the backward.

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "schedules/lowering/layer_step.h"

namespace stepsim {

struct OpExchange {
  std::size_t op = 0;  // position in Layer::ops
  std::vector<LayerStep> before_forward{};
  std::vector<LayerStep> after_forward{};
  std::vector<LayerStep> before_backward{};  // before its input gradient
  std::vector<LayerStep> after_backward{};   // after its weight gradient
  // The op behind it that reads what before_forward brings, where that is not its own input.
  std::optional<std::size_t> receiver{};
  // Its kernels begin a step in the forward, and end one in the backward.
  bool starts_step = false;
  // Beside its input gradient, in the background; its weight gradient waits for their tickets.
  std::vector<LayerStep> for_weights{};
  // In place of its kernels, where they are interleaved with communication: with what they keep and
  // let go. Both or none.
  std::vector<LayerStep> forward{};
  std::vector<LayerStep> backward{};
  // From its forward on, where not all that its backward lets go (LayerOp::saved): the rest is made
  // again by steps before its backward.
  std::optional<Bytes> kept{};
};

// A collective that the next compute step waits for.
LayerStep exchange(Lane lane, CollectiveOp op, Bytes bytes, DataType type);

}  // namespace stepsim
