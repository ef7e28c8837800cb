// Reads models as Hugging Face publishes them: the config.json of each family in
// hugging_face_families.cc. If a model has several parts (gemma3), its text_config is read.
//
// Where a file has parts for pictures or sound, model.note says that they aren't counted.
//
// Keys that don't concern the shape are ignored. Keys that do, and that the family doesn't have,
// are refused. Dropout is on only if the file says so, whatever the transformers library assumes.

#pragma once

#include <filesystem>
#include <string>

#include "proto/messages/message_file.h"
#include "proto/model.pb.h"

namespace stepsim {

// Returns the config.json of a folder, there or not; any other path, and what is called .json, as
// it is.
std::filesystem::path config_of(const std::filesystem::path& path);

// True if the file says model_type, as every config.json does.
bool is_hugging_face(const SourceText& source);

// `as`: the family as which the file is read, whatever it calls itself; "": its own. model.note
// says so. Keys that shape a model and that this family doesn't have are refused then, too.
void read_hugging_face(const SourceText& source, const std::string& as, file::Model& model,
                       ProblemList& problems);

}  // namespace stepsim
