// The catalog's data for the measured tables that `stepsim accuracy` reads: hardware, software and
// models that the tables name. All functions throw ConfigError with every problem of the catalog's
// files.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/uncertainty.h"
#include "workload/model_spec.h"

namespace stepsim {

// Hardware is a chip or a machine as tables call it, with the catalog's entries for it
// (catalog/hardware/aliases.textproto).
struct Hardware {
  std::vector<std::string> names;  // "H100-80GB SXM"
  std::string chip;                // "h100-sxm"
  std::string cluster;             // family, or one cluster; empty: none
  bool cluster_has_sizes = true;   // <cluster>-<chips>
  std::int64_t chips_per_node = 8;
  std::string multislice{};  // family of several slices on a data-centre network; empty: none
  std::int64_t cores_per_chip = 1;   // cores that names of slices count: v5p-128 has 64 chips
  std::vector<std::string> words{};  // of all names (hardware_words.h), sorted
};
std::vector<Hardware> load_hardware();

// Machine is what a cloud lets under a name that says what its network carries.
struct Machine {
  std::vector<std::string> names;  // in small letters: "p4d", "a3-megagpu-8g"
  Bandwidth network{};             // of all its chips together, one way
};
std::vector<Machine> load_machines();

// Returns the first machine that a text names, in any letters; nullptr if there is none. A name
// ends where its letters and digits end: p5 is in "p5.48xlarge", not in "p5en".
const Machine* find_machine(const std::vector<Machine>& machines, std::string_view text);

// Returns the entry that a name in a table stands for; nullptr if there is none. It is the one that
// has the name as it stands, or else the first one that knows all of its words, of which one names
// a chip or a machine ("NVIDIA A100-SXM4-40GB", "8x H100 SXM5"), or all are those of one of its
// names.
const Hardware* find_hardware(const std::vector<Hardware>& hardware, std::string_view name);

// SoftwareRecipe is what the recipe of a model turns on, where a row says no more than that its
// overlap is the recipe's.
struct SoftwareRecipe {
  std::string model;  // part of its name: small letters and digits
  std::string chip;   // how its name in the table begins, in small letters; empty: any
  std::vector<std::pair<std::string, std::string>> plan;
};

// Software is the software that a table was made with. It gives the values that the table omits
// (catalog/software). load_measured_cluster() applies its changes to chips.
// MemoryFigure is what a published figure of memory counts: tensors, also what PyTorch's allocator
// keeps of freed ones, also context and libraries (nvidia-smi).
enum class MemoryFigure : std::uint8_t { kAllocated, kReserved, kDevice };

// Of twelve public logs of Megatron-LM and what is made of it, which print tensors at the peak and
// what is reserved (in the order of what is more: 0.6, 0.7, 0.8, 0.8, 2.5, 3.8, 5.4, 7.7, 14, 22,
// 38, 52 %): the middle.
inline constexpr double kUnusedMemory = 0.05;

struct Software {
  std::string name;                  // "torchtitan 2024.12"
  std::vector<std::string> sources;  // beginnings of a source_id, or parts of a source_ref
  std::vector<std::string> also_called{};
  std::vector<std::string> not_called{};                  // words that no name of it has
  std::vector<std::pair<std::string, std::string>> plan;  // keys of a plan and their values
  bool dropout = false;                                   // dropout of models without a gated MLP
  bool recomputes_as_needed = false;  // full recompute leaves out a block's last matmul
  bool recomputes_cudnn = false;  // recompute alternate does not keep what cuDNN's attention makes
  std::vector<std::string> dtypes{};      // parts of a dtype, of which a row has one; empty: any
  std::int64_t pads_vocabulary = 1;       // to a multiple of this many tokens for each tensor rank
  std::vector<SoftwareRecipe> recipes{};  // the first whose model fits
  std::int64_t vocabulary = 51'200;  // of models whose rows give none: GPT-2's, as Megatron pads it
  std::vector<std::pair<std::string, std::string>> tuning{};  // keys for rows of fine-tuning
  std::vector<SoftwareRecipe> on_chips{};  // keys for chips of the catalog; the first that fits
  MemoryFigure memory_figure = MemoryFigure::kDevice;
  double unused_memory = kUnusedMemory;  // beside tensors at the peak, as a part of them
  // Under ZeRO 1 and 2: what the optimizer's flat copies of gradients take for each parameter whose
  // state the rank holds.
  std::int64_t flat_gradient_bytes = 0;
};
std::vector<Software> load_software();
// Returns a name of software as a shell likes it, and as a plan has it: "torchtitan-2024.12".
std::string software_in_dashes(std::string name);

// MeasuredModel is a model as tables call it, with the data that their columns omit
// (catalog/measured/models.textproto).
struct MeasuredModel {
  std::vector<std::string> names;   // parts of the name: small letters and digits, "deepseekv3"
  LatentSpec latent{};              // sizes of multi-head latent attention; tables say "MLA"
  std::int64_t first_dense = 0;     // first layers, which have no experts
  std::int64_t shared_experts = 0;  // each as wide as a routed one
  bool attention_sinks = false;
  std::optional<ModelSpec> sizes{};  // the whole model, for rows that give no sizes
};
std::vector<MeasuredModel> load_measured_models();

// Returns every model of the catalog.
std::vector<ModelSpec> load_catalog_models();

// PredictedRun is a measured training run beside its prediction (catalog/predictions).
struct PredictedRun {
  std::string group;   // sources drawn alike: "llm-foundry, A100"
  std::string source;  // "llm_foundry_a100"
  double measured_s = 0;
  double predicted_s = 0;
};
std::vector<PredictedRun> load_predicted_runs();  // in order of groups

// Returns how far predictions were off, most specific situation first (catalog/uncertainty).
std::vector<IntervalEntry> load_intervals();

// MeasuredCluster is the cluster that a row ran on.
struct MeasuredCluster {
  std::string cluster;   // name in the catalog
  std::string chip;      // name in the catalog; replaces the cluster's chip
  std::string software;  // name of a Software, whose fields override the chip's; empty: none
  std::string library;   // replaces the chip's library; empty: keep it
};
ClusterSpec load_measured_cluster(const MeasuredCluster& measured);

}  // namespace stepsim
