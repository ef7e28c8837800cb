// Finds an op of a layer by its name.

#pragma once

#include <stdexcept>
#include <string_view>

#include "workload/layers.h"

namespace stepsim {

// Throws std::out_of_range if there is none.
inline const LayerOp& op_named(const Layer& layer, std::string_view name) {
  for (const LayerOp& op : layer.ops) {
    if (op.name == name) return op;
  }
  throw std::out_of_range("no op of that name");
}

}  // namespace stepsim
