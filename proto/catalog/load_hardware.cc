#include <algorithm>

#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_message.h"
#include "proto/catalog/hardware_words.h"
#include "proto/catalog/measured_tables.h"
#include "proto/hardware.pb.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

Bandwidth read_bandwidth(const std::string& text, ProblemList& problems) {
  const auto read = parse_bandwidth(text);
  if (!read) problems.add("hardware", "must be a bandwidth, is " + text);
  return read.value_or(Bandwidth());
}

}  // namespace

std::vector<Hardware> load_hardware() {
  ProblemList problems;
  std::vector<Hardware> table;
  const auto message = catalog_table<file::HardwareTable>("hardware", problems);
  for (const file::Hardware& entry : message.hardware()) {
    Hardware& hardware = table.emplace_back();
    hardware.names.assign(entry.name().begin(), entry.name().end());
    hardware.chip = entry.chip();
    hardware.cluster = entry.has_one_cluster() ? entry.one_cluster() : entry.cluster();
    hardware.cluster_has_sizes = !entry.has_one_cluster();
    if (entry.has_chips_per_node()) hardware.chips_per_node = entry.chips_per_node();
    hardware.multislice = entry.multislice();
    hardware.pci_devices.assign(entry.pci_device().begin(), entry.pci_device().end());
    hardware.architectures.assign(entry.architecture().begin(), entry.architecture().end());
    if (entry.has_link_bandwidth()) {
      hardware.link_bandwidth = read_bandwidth(entry.link_bandwidth(), problems);
    }
    if (entry.has_cores_per_chip()) hardware.cores_per_chip = entry.cores_per_chip();
    for (const std::string& name : hardware.names) {
      const std::vector<std::string> words = hardware_words(name);
      hardware.words.insert(hardware.words.end(), words.begin(), words.end());
    }
    std::ranges::sort(hardware.words);
  }
  throw_if_any(problems.all());
  return table;
}

const Hardware* find_device(const std::vector<Hardware>& hardware, std::string_view device,
                            std::string_view architecture) {
  const auto with = [&](const std::vector<std::string> Hardware::*list, std::string_view wanted) {
    const auto found = std::ranges::find_if(hardware, [&](const Hardware& entry) {
      return std::ranges::find(entry.*list, wanted) != (entry.*list).end();
    });
    return found == hardware.end() ? nullptr : &*found;
  };
  const Hardware* const found = with(&Hardware::pci_devices, device);
  return found != nullptr ? found : with(&Hardware::architectures, architecture);
}

std::vector<SocketLink> load_socket_links() {
  ProblemList problems;
  std::vector<SocketLink> table;
  const auto message = catalog_table<file::HardwareTable>("hardware", problems);
  for (const file::SocketLink& entry : message.socket_link()) {
    table.push_back({.arch = entry.arch(),
                     .vendor = entry.vendor(),
                     .first_model = entry.first_model(),
                     .bandwidth = read_bandwidth(entry.bandwidth(), problems)});
  }
  throw_if_any(problems.all());
  return table;
}

const Hardware* find_hardware(const std::vector<Hardware>& hardware, std::string_view name) {
  for (const Hardware& entry : hardware) {
    if (std::ranges::find(entry.names, name) != entry.names.end()) return &entry;
  }
  const std::vector<std::string> words = hardware_words(name);
  if (words.empty()) return nullptr;
  const bool has_name = std::ranges::any_of(words, names_hardware);
  for (const Hardware& entry : hardware) {
    if (!std::ranges::includes(entry.words, words)) continue;
    const auto is_it = [&](const std::string& known) { return hardware_words(known) == words; };
    if (has_name || std::ranges::any_of(entry.names, is_it)) return &entry;
  }
  return nullptr;
}

}  // namespace stepsim
