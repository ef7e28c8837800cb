// Finds an op of a layer by its name, and sums up what kernels move.

#pragma once

#include <stdexcept>
#include <string_view>
#include <vector>

#include "workload/parts/layer_op.h"

namespace stepsim {

// For searches by the printed name: std::ranges::find(ops, "rope", text_of_op).
inline std::string_view text_of_op(const LayerOp& op) {
  return op.name.text();
}

// Throws std::out_of_range if there is none.
inline const LayerOp& op_named(const Layer& layer, std::string_view name) {
  for (const LayerOp& op : layer.ops) {
    if (op.name.text() == name) return op;
  }
  throw std::out_of_range("no op of that name");
}

// Returns the bytes that the kernels read and write.
inline Bytes moved(const std::vector<Kernel>& kernels) {
  Bytes sum;
  for (const Kernel& kernel : kernels) sum += kernel.read + kernel.written;
  return sum;
}

}  // namespace stepsim
