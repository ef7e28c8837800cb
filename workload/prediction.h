// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): a module looks up the tokens
// one further on, normalises them and the output of the block before it, joins the two, projects
// them to the width of the stream, and goes on with a block and a head:
//
//   T look-up | S norms, join, projection --> block --> head
//
// The projection is whole on every tensor rank and multiplies its own tokens. The table is that of
// the embedding: no parameters here; lowering counts the copy and its gradient.

#pragma once

#include "workload/parts/layer_part.h"

namespace stepsim {

Layer prediction_entry_layer(const Part& part);

}  // namespace stepsim
