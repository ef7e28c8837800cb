// Reads a text of the catalog as a message, once in a process: later calls copy what the first one
// read. The catalog is part of the binary, so nothing has to be looked up again. Files of users are
// read with read_message() (proto/messages/message_file.h), every time.
//
// Complexity: a first call parses the text; a later one hashes it and copies the message. Several
// threads may call it at once.

#pragma once

#include <string>
#include <string_view>

#include "proto/catalog/catalog.h"
#include "proto/messages/message_file.h"
#include "proto/model.pb.h"

namespace stepsim {

// As read_message(). REQUIRES: the source is an entry or a table of the catalog. A text that has
// problems is not kept.
bool read_catalog_message(const SourceText& source, std::string_view prefix,
                          google::protobuf::Message& message, ProblemList& problems);

// Returns all tables of a folder of the catalog as one, in the order of their files: "engines".
template <class Table>
Table catalog_table(std::string_view folder, ProblemList& problems) {
  Table all;
  for (const SourceText& source : catalog_tables(folder)) {
    Table table;
    read_catalog_message(source, "", table, problems);
    all.MergeFrom(table);
  }
  return all;
}

// Reads a model: a message, or the config.json of Hugging Face, for which `as` is that of
// read_hugging_face(). Returns whether it is such a config.
bool read_catalog_model(const SourceText& source, std::string_view prefix, const std::string& as,
                        file::Model& model, ProblemList& problems);

}  // namespace stepsim
