// Loads experiments and their parts from files, catalog names and flags of the command line. All
// functions throw ConfigError with all problems, each under its field.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/passes/served_load.h"
#include "experiment/published.h"
#include "proto/experiment_record.h"
#include "topology/topology.h"

namespace stepsim {

// ExperimentSource says where an experiment comes from: a file (.textproto or .json; the .json may
// be the result of a run, which contains its experiment), a catalog name, or the flags. With an
// experiment, --model, --cluster and a name or file of --software replace its own; --plan, --pass
// and keys of --software override keys of its. `overrides` are "path=value" pairs of --set. Those
// that name another entry to be based on (plan.catalog, model.huggingface) are applied first, then
// the others, in order. If the model or cluster is replaced, the experiment gets a new name made of
// both.
struct ExperimentSource {
  std::string experiment = {};  // file or catalog name; may be empty with the flags below
  std::string model = {};       // --model: catalog name, or a Hugging Face config.json
  std::string cluster = {};     // --cluster: catalog name or file
  std::string plan = {};        // --plan: "tp=8,pp=4,...": stepsim help plan; catalog name or file
  std::string software = {};    // --software: "torchtitan,loss=separate", a file, or keys alone
  std::string pass = {};        // --pass: "decode,batch=64,context=8192"
  std::string transport = {};   // --transport: "dcqcn,rto=1ms": stepsim help transport
  std::string chip = {};        // --chip: catalog name or file; replaces the cluster's chip
  std::string library = {};     // --library: the same of the cluster's library
  std::vector<std::string> overrides = {};
  bool has_axes = false;  // the file may have axes (`over`), which stepsim sweep reads
  // What the file contains, as protobuf text, if it is not on a disk; `experiment` is then its
  // name.
  std::string text = {};
};

// Returns the source with these keys, each in the line of its group: "tp=8,loss=fused" is tp=8 of
// --plan and loss=fused of
// --software.
ExperimentSource with_keys(ExperimentSource source, std::string_view keys);

Experiment load_experiment(const ExperimentSource& source);

// LoadedExperiment is an experiment with everything else that loading found.
struct LoadedExperiment {
  Experiment experiment;
  BuiltTopology topology;        // the cluster's topology, built to check the plan
  ExperimentOptions simulation;  // how to simulate it, from the file
  ExperimentRecord record;       // complete record, to be written down and run again
  Publication publication{};     // published figures; empty once flags change the experiment
  ServedLoad served{};           // how `stepsim serve` serves it; empty: not said
  // Keys that files have where 0.1 had them: "plan.loss is software.loss".
  std::vector<std::string> moved_keys{};
};

LoadedExperiment load_with_topology(const ExperimentSource& source);

// AxesOfFile is what `stepsim sweep` reads of a file before its points: the axes ("plan.tp=1,2,4"),
// and keys that moved.
struct AxesOfFile {
  std::vector<std::string> over{};
  std::vector<std::string> moved_keys{};
};
AxesOfFile load_axes(const std::string& experiment);  // nothing for a name

// Loads an experiment whose plan is the start of others: its values are read, but the rules between
// them, the model and the cluster are not checked. There is no record.
LoadedExperiment load_start(const ExperimentSource& source);

// Loads a cluster alone, and a communication library or a chip if not its own: catalog names or
// files.
ClusterSpec load_cluster(const std::string& cluster, const std::string& library = {},
                         const std::string& chip = {});

// Both take a catalog name or a file.
ChipSpec load_chip(const std::string& name);
ModelSpec load_model(const std::string& model);

// Takes what --plan does: keys, a catalog name or a file. Reads each value that is given; the rules
// between them need a model and a cluster, and are not checked.
ParallelPlan load_plan(const std::string& plan);

}  // namespace stepsim
