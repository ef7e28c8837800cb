// Experiment is a checked description of one run: which model, on which cluster, with which plan.
// It is what the files and flags of the command line become; nothing after it sees protobuf.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/plan/parallel_plan.h"
#include "sim/chips/chip_spec.h"
#include "sim/collectives/library.h"
#include "sim/hardware/cluster.h"
#include "sim/hardware/hosts.h"
#include "sim/program/variation.h"
#include "topology/topology.h"
#include "workload/model_spec.h"

namespace stepsim {

struct ClusterSpec {
  std::string name;
  ChipSpec chip;
  TopologySpec topology;
  Faults faults{};  // of its links
  CommunicationLibrary library{};
  HostSpec host{};            // of its chips; not given: none
  Bandwidth switch_adders{};  // operands that each switch adds up a second; 0: as fast as they come
};

struct Experiment {
  std::string name;
  ModelSpec model;
  ClusterSpec cluster;
  ParallelPlan plan;
  Variation variation{};
};

// Where an experiment comes from: a file (.textproto or .json), a catalog name, or the three
// flags. With an experiment, --model and --cluster take the place of its own, and the keys of
// --plan go over its plan. `overrides` are "path=value" pairs of --set; those that name something
// else to start from (plan.catalog, model.huggingface) first, then the others, in order.
struct ExperimentSource {
  std::string experiment;    // file or catalog name; may be empty with the flags below
  std::string model;         // --model: catalog name, or a Hugging Face config.json
  std::string cluster;       // --cluster: catalog name or file
  std::string plan;          // --plan: "tp=8,pp=4,...": docs/plan-keys.md; catalog name or file
  std::string library = {};  // --library: of the catalog; in place of the cluster's
  std::string text = {};     // protobuf text in place of a file named by `experiment`
  std::vector<std::string> overrides;
};

// Throws ConfigError with every problem of the source at once: of the files, the model, the
// cluster, and of the plan for them.
Experiment load_experiment(const ExperimentSource& source);

// The same with its topology, which has been built to check the plan.
struct LoadedExperiment {
  Experiment experiment;
  BuiltTopology topology;
};
LoadedExperiment load_with_topology(const ExperimentSource& source);

// What its steps run on: with hosts where the plan offloads, and chips at the clock that they
// sustain.
Cluster cluster_for_steps(const Experiment& experiment, BuiltTopology topology);

// A cluster by itself: catalog name or file, and the communication library if not its own. Throws
// ConfigError with every problem of it.
ClusterSpec load_cluster(const std::string& cluster, const std::string& library = {});

// The hardware that a spec describes; hosts only where they are asked for, so that runs without
// offload don't carry their links. Throws ConfigError where the topology can't be built.
Cluster build_cluster(const ClusterSpec& spec, bool with_hosts = false);
// The same around its topology, which has been built.
Cluster build_cluster(const ClusterSpec& spec, BuiltTopology built, bool with_hosts);

// A chip of the catalog, and a model: catalog name or file. Throw ConfigError with every problem.
ChipSpec load_chip(const std::string& name);
ModelSpec load_model(const std::string& model);

// What measured tables call a chip or a machine, and what the catalog has for it
// (catalog/hardware/aliases.textproto).
struct Hardware {
  std::vector<std::string> names;  // "H100-80GB SXM"
  std::string chip;                // "h100-sxm"
  std::string cluster;             // family, or one cluster; empty: none
  bool cluster_has_sizes = true;   // <cluster>-<chips>
  std::int64_t chips_per_node = 8;
};
std::vector<Hardware> load_hardware();

// The software that a measured table was made with, and what holds where the table does not say
// (catalog/software).
struct Software {
  std::string name;                  // "torchtitan 2024.12"
  std::vector<std::string> sources;  // beginnings of a source_id, or parts of a source_ref
  std::vector<std::pair<std::string, std::string>> plan;  // keys and values as in a plan file
  bool dropout = false;                                   // in models without a gated MLP
  std::string fixed_memory;  // in place of the chip's; empty: the chip's
  // Beginnings of chip names, and fields of a chip file that go over theirs: the first that fits.
  std::vector<std::pair<std::string, std::string>> chips;
};
std::vector<Software> load_software();

}  // namespace stepsim
