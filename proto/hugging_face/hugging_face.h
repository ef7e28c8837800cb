// Models as Hugging Face publishes them: config.json of the families in hugging_face_families.cc.
// Of a model with several parts (gemma3) the text_config is read.
//
// Keys that say nothing of the shape are ignored; those that do, and that the family doesn't have,
// are refused. Dropout is only what the file says, whatever transformers takes where it says
// nothing.

#pragma once

#include "proto/message_file.h"
#include "proto/model.pb.h"

namespace stepsim {

// True if the file says model_type, as every config.json does.
bool is_hugging_face(const SourceText& source);

void read_hugging_face(const SourceText& source, file::Model& model, ProblemList& problems);

}  // namespace stepsim
