// What the catalog knows of the tables of measurements that `stepsim accuracy` reads: the hardware,
// the software and the models that they name. All functions throw ConfigError with every problem of
// the catalog's files.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "workload/model_spec.h"

namespace stepsim {

// A chip or a machine as tables call it, and what the catalog has for it
// (catalog/hardware/aliases.textproto).
struct Hardware {
  std::vector<std::string> names;  // "H100-80GB SXM"
  std::string chip;                // "h100-sxm"
  std::string cluster;             // family, or one cluster; empty: none
  bool cluster_has_sizes = true;   // <cluster>-<chips>
  std::int64_t chips_per_node = 8;
};
std::vector<Hardware> load_hardware();

// The software that a table was made with, and what holds if the table does not say
// (catalog/software). What it changes about chips comes with load_measured_cluster().
struct Software {
  std::string name;                  // "torchtitan 2024.12"
  std::vector<std::string> sources;  // beginnings of a source_id, or parts of a source_ref
  std::vector<std::pair<std::string, std::string>> plan;  // keys of a plan and their values
  bool dropout = false;                                   // in models without a gated MLP
};
std::vector<Software> load_software();

// A model as tables call it, and what it has that their columns do not tell
// (catalog/measured/models.textproto).
struct MeasuredModel {
  std::vector<std::string> names;   // parts of the name: small letters and digits, "deepseekv3"
  LatentSpec latent{};              // sizes of multi-head latent attention; tables say "MLA"
  std::int64_t first_dense = 0;     // layers at the beginning without experts
  std::int64_t shared_experts = 0;  // each as wide as a routed one
  bool attention_sinks = false;
  std::string problem;  // why stepsim can't simulate it; empty: it can
};
std::vector<MeasuredModel> load_measured_models();

// The cluster that a row ran on.
struct MeasuredCluster {
  std::string cluster;   // of the catalog
  std::string chip;      // of the catalog, in place of the cluster's
  std::string software;  // name of a Software, whose fields go over the chip's; empty: none
  std::string library;   // in place of the chip's; empty: the chip's
};
ClusterSpec load_measured_cluster(const MeasuredCluster& measured);

}  // namespace stepsim
