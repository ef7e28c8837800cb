// training_run() makes an experiment of a row of a table of training runs: what the columns say,
// and what has to be assumed where they are silent.
//
// What the catalog knows comes first: the software of the table (catalog/software), what the
// model's columns leave out (catalog/measured), the machines (catalog/hardware). Beyond that these
// things are assumed: the padded vocabulary of Megatron's GPT-2 (51,200) if none is given; models
// without a gated MLP are GPTs (layer norm, biases, learned positions, tied embeddings); if the
// layers don't divide into stages, the stages at both ends are one layer shorter; no recompute
// unless it is stated; plain 1F1B unless interleaving is stated; sequence parallelism if there are
// experts. A fraction of a micro-batch, or anything that stepsim can't express (activations that
// are offloaded or saved by name), is a problem.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/accuracy/csv_table.h"
#include "experiment/experiment.h"
#include "proto/catalog/measured_tables.h"

namespace stepsim {

// The catalog's entries for measured tables.
struct MeasuredCatalog {
  std::vector<Hardware> hardware;
  std::vector<Software> software;
  std::vector<MeasuredModel> models;
};

struct TrainingRun {
  Experiment experiment;
  BuiltTopology topology;  // the cluster's, built
  std::string problem;     // why the row can't be simulated; empty: it can
};

// `library`: in place of the cluster's own; empty: that.
TrainingRun training_run(const CsvTable& table, std::size_t record, const MeasuredCatalog& catalog,
                         const std::string& library);

}  // namespace stepsim
