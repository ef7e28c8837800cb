// A row of a table of training runs as an experiment file: what the columns say, and what has to be
// assumed where they are silent.
//
// Assumed: what the software of the table does (catalog/software); the vocabulary of Megatron's
// GPT-2 (51,200, padded) where none is given; of models without a gated MLP, that they are GPTs
// (layer norm, biases, learned positions, tied embeddings); stages that are one layer shorter at
// both ends where layers do not divide; no recompute where it isn't stated; plain 1F1B where
// interleaving isn't; sequence parallelism where there are experts. A fraction of a micro-batch, or
// anything that stepsim can't express (activations that are offloaded or saved by name), is a
// problem.

#pragma once

#include <string>
#include <vector>

#include "analysis/accuracy/accuracy.h"

namespace stepsim {

struct RunText {
  std::string experiment;  // protobuf text
  std::string problem;     // why there is none; empty: there is one
};

RunText training_run_text(const CsvTable& table, std::size_t record, const Hardware& hardware,
                          const Software& software);

// The software of a record: column `software` names it, or its source is listed there. Without
// either one that says nothing.
Software software_of(const CsvTable& table, std::size_t record, const std::vector<Software>& known);

}  // namespace stepsim
