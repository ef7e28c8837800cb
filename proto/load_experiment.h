// Experiments and their parts from files, names of the catalog and flags of the command line. All
// functions throw ConfigError with every problem at once, each under its field.

#pragma once

#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/published.h"
#include "proto/experiment_record.h"
#include "topology/topology.h"

namespace stepsim {

// Where an experiment comes from: a file (.textproto or .json; the .json may be the result of a
// run, which holds its experiment), a catalog name, or the three flags. With an experiment, --model
// and --cluster take the place of its own, and the keys of
// --plan go over its plan. `overrides` are "path=value" pairs of --set; those that name something
// else to start from (plan.catalog, model.huggingface) first, then the others, in order. An
// experiment whose model or cluster is replaced is no longer the one of that name: it is called
// after both.
struct ExperimentSource {
  std::string experiment = {};  // file or catalog name; may be empty with the flags below
  std::string model = {};       // --model: catalog name, or a Hugging Face config.json
  std::string cluster = {};     // --cluster: catalog name or file
  std::string plan = {};        // --plan: "tp=8,pp=4,...": docs/plan-keys.md; catalog name or file
  std::string library = {};     // --library: of the catalog; in place of the cluster's
  std::vector<std::string> overrides = {};
};

Experiment load_experiment(const ExperimentSource& source);

// The same with what else was found on the way.
struct LoadedExperiment {
  Experiment experiment;
  BuiltTopology topology;        // of its cluster; it has been built to check the plan
  ExperimentOptions simulation;  // what the file says about how it is simulated
  ExperimentRecord record;       // all of it, to be written down and run again
  Publication publication{};     // what was measured of it; nothing once flags change it
};
LoadedExperiment load_with_topology(const ExperimentSource& source);

// A cluster by itself: catalog name or file, and the communication library if not its own.
ClusterSpec load_cluster(const std::string& cluster, const std::string& library = {});

// A chip of the catalog, and a model: catalog name or file.
ChipSpec load_chip(const std::string& name);
ModelSpec load_model(const std::string& model);

}  // namespace stepsim
