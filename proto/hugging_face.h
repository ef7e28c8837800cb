// Models as Hugging Face publishes them: config.json. Two families of dense decoders are read:
//
//   llama   rotary positions, RMS norm, gated MLP, grouped-query attention
//   gpt2    learned positions, layer norm, biases, MLP of width n_inner (4 x n_embd unless given)
//
// Keys and their defaults are those of transformers' LlamaConfig and GPT2Config, but the sizes of
// the model must be given. Null means absent; keys that say nothing of the shape are ignored.

#pragma once

#include "proto/message_file.h"
#include "proto/model.pb.h"

namespace stepsim {

// True if the file says model_type, as every config.json does.
bool is_hugging_face(const SourceText& source);

void read_hugging_face(const SourceText& source, file::Model& model, ProblemList& problems);

}  // namespace stepsim
