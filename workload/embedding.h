// The embedding: each chip looks every token up in its own rows of the table; the results are
// summed over the tensor group. Learned positions are added after that.

#pragma once

#include <string_view>

#include "workload/parts/layer_part.h"

namespace stepsim {

inline constexpr std::int64_t kTokenIdBytes = 8;

// Returns the third branch of a layer with vectors of its own (EmbeddingSpec::of_layers): it
// reads the stream through a gate, multiplies by its vector, and adds what a projection makes of
// it.
std::vector<LayerOp> layer_embedding_branch(const Part& part);

Layer embedding_layer(const Part& part);

// Returns the look-up alone.
LayerOp look_up(const Part& part, OpName name);

}  // namespace stepsim
