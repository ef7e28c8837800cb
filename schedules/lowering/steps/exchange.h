// OpExchange is the communication of one op of a layer for context or expert parallelism. The files
// of each axis make them (context.h, expert.h). lower_tensor() puts them into the forward and into
// both forms of the backward.

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "schedules/lowering/steps/layer_step.h"

namespace stepsim {

struct OpExchange {
  std::size_t op = 0;  // position in Layer::ops
  std::vector<LayerStep> before_forward{};
  std::vector<LayerStep> after_forward{};
  std::vector<LayerStep> before_backward{};  // before its input gradient
  std::vector<LayerStep> after_backward{};   // after its weight gradient
  // Position of a later op that reads what before_forward brings. Unset: the op itself reads it.
  std::optional<std::size_t> receiver{};
  // The op's kernels begin a step in the forward and end one in the backward.
  bool starts_step = false;
  // Steps beside the op's input gradient, in the background. Its weight gradient waits for their
  // tickets.
  std::vector<LayerStep> for_weights{};
  // These steps replace the op's kernels where kernels and communication are interleaved. They
  // include the memory that the steps keep and release. Either both are given or neither.
  std::vector<LayerStep> forward{};
  std::vector<LayerStep> backward{};
  // Bytes kept from the forward on, if less than the backward releases (LayerOp::saved). Steps
  // before the backward make the rest again.
  std::optional<Bytes> kept{};
};

// Makes a collective that the next compute step waits for.
LayerStep exchange(Lane lane, CollectiveOp op, Bytes bytes, DataType type);

}  // namespace stepsim
