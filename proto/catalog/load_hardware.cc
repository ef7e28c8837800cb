#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_message.h"
#include "proto/catalog/measured_tables.h"
#include "proto/hardware.pb.h"

namespace stepsim {

std::vector<Hardware> load_hardware() {
  ProblemList problems;
  std::vector<Hardware> table;
  for (const SourceText& source : catalog_tables("hardware")) {
    file::HardwareTable message;
    read_catalog_message(source, "", message, problems);
    for (const file::Hardware& entry : message.hardware()) {
      Hardware& hardware = table.emplace_back();
      hardware.names.assign(entry.name().begin(), entry.name().end());
      hardware.chip = entry.chip();
      hardware.cluster = entry.has_one_cluster() ? entry.one_cluster() : entry.cluster();
      hardware.cluster_has_sizes = !entry.has_one_cluster();
      if (entry.has_chips_per_node()) hardware.chips_per_node = entry.chips_per_node();
      hardware.multislice = entry.multislice();
      if (entry.has_cores_per_chip()) hardware.cores_per_chip = entry.cores_per_chip();
    }
  }
  throw_if_any(problems.all());
  return table;
}

}  // namespace stepsim
