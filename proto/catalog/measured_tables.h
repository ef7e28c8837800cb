// The catalog's data of what was measured: names that machines give their chips, software,
// intervals of predictions. All functions throw ConfigError with every problem of the catalog's
// files.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/uncertainty.h"

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
  std::int64_t cores_per_chip = 1;         // cores that names of slices count: v5p-128 has 64 chips
  std::vector<std::string> pci_devices{};  // "10de:2330"
  std::vector<std::string> architectures{};  // "sm 90", "gfx942"
  Bandwidth link_bandwidth{};                // of an NVLink or xGMI link, one way; 0: not known
  std::vector<std::string> words{};          // of all names (hardware_words.h), sorted
};
std::vector<Hardware> load_hardware();

// Returns the entry with the PCI device ("10de:2330"), or else the one taken for the architecture;
// nullptr if there is none.
const Hardware* find_device(const std::vector<Hardware>& hardware, std::string_view device,
                            std::string_view architecture);

// SocketLink is what joins the processors of a machine.
struct SocketLink {
  std::string arch;
  std::string vendor;  // empty: any
  std::int64_t first_model = 0;
  Bandwidth bandwidth{};
};
std::vector<SocketLink> load_socket_links();

// Returns the entry that a name in a table stands for; nullptr if there is none. It is the one that
// has the name as it stands, or else the first one that knows all of its words, of which one names
// a chip or a machine ("NVIDIA A100-SXM4-40GB", "8x H100 SXM5"), or all are those of one of its
// names.
const Hardware* find_hardware(const std::vector<Hardware>& hardware, std::string_view name);

// Returns the names of software and its recipes, as --software takes them: "torchtitan-2025.03",
// "nemo-25/llama3-70b".
std::vector<std::string> software_names();

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

}  // namespace stepsim
