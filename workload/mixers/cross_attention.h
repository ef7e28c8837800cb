// The cross attention of a decoder layer (T5, arXiv 1910.10683): queries of its own tokens, keys
// and values of the encoder's, which are as many.
//
//   S norm | T cross_query_projection, cross_key_value_projection, cross_attention,
//   cross_out_projection | S residual
//
// The encoder's result is the same for all decoder layers and is kept once, by the first that reads
// it. Not modelled: stages of a pipeline hand it on beside the decoder's own stream.

#pragma once

#include <vector>

#include "workload/parts/layer_part.h"

namespace stepsim {

std::vector<LayerOp> cross_attention_branch(const Part& part);

}  // namespace stepsim
