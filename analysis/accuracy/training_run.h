// training_run() turns a row of a table of training runs into an experiment. It uses the columns
// and makes assumptions where they say nothing.
//
// The catalog comes first: the software of the table (catalog/software), the model data that
// columns omit (catalog/measured), and the machines (catalog/hardware). Beyond that it assumes: the
// padded vocabulary of Megatron's GPT-2 (51,200) if none is given; models without a gated MLP are
// GPTs (layer norm, biases, learned positions, tied embeddings); if the layers don't divide into
// stages, the stages at both ends are one layer shorter; plain 1F1B unless interleaving is stated;
// sequence parallelism if there are experts. Where a row does not say what is recomputed, the
// cheapest that fits in memory is assumed. A fraction of a micro-batch is a problem, and so is
// anything that stepsim cannot express.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/accuracy/training_run_recompute.h"
#include "experiment/experiment.h"
#include "proto/catalog/measured_tables.h"
#include "sim/base/csv_table.h"

namespace stepsim {

// The catalog's entries for measured tables.
struct MeasuredCatalog {
  std::vector<Hardware> hardware;
  std::vector<Machine> machines;
  std::vector<Software> software;
  std::vector<MeasuredModel> models;
  std::vector<ModelSpec> catalog{};  // models of the catalog, for rows that only name one
};

struct TrainingRun {
  Experiment experiment;
  BuiltTopology topology;  // the built topology of the cluster
  std::string problem;     // why the row cannot be simulated; empty: it can
  // What the row leaves open. The caller takes the first of `recomputes` whose memory fits, or the
  // first; empty: the row says what is recomputed.
  std::vector<std::string> assumed;
  std::vector<RecomputeGuess> recomputes;
  bool is_whole = false;      // the row is an experiment: it leaves nothing open
  bool zero_is_open = false;  // the row doesn't say whether replicas divide the optimizer's state
  MemoryFigure memory_figure = MemoryFigure::kDevice;  // unless the row says otherwise
  double unused_memory = kUnusedMemory;
  std::int64_t flat_gradient_bytes = 0;  // that stay reserved: measured_tables.h
};

// Returns what the software's optimizer copies of gradients under this plan, in bytes of each
// parameter whose state a rank has.
std::int64_t flat_gradient_bytes_of(const Software& software, const ParallelPlan& plan);

// `library` replaces the cluster's own; empty keeps it.
TrainingRun training_run(const CsvTable& table, std::size_t record, const MeasuredCatalog& catalog,
                         const std::string& library);

}  // namespace stepsim
