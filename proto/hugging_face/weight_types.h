// The types of the weights of a published file, from its quantization_config.

#pragma once

#include "proto/hugging_face/families/hugging_face_config.h"
#include "proto/model.pb.h"

namespace stepsim {

// Sets model.weight_type from quantization_config: the methods fp8 (by block or tensor), mxfp4,
// compressed-tensors, modelopt, gptq, awq, auto-round, bitsandbytes, eetq. Without one nothing is
// set. Where matrices differ, the type of most of them counts. An unknown
// method is a problem. Layers that a file leaves in 16 bits are not told apart.
void read_weight_type(HuggingFaceConfig& config, file::Model& model);

}  // namespace stepsim
