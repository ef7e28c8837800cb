#include "sim/fields/field.h"
#include "sim/fields/quantity_field.h"
#include "topology/graph/latency_limits.h"
#include "topology/kinds/switched/pcie_box.h"

namespace stepsim {

const FieldTable<PcieBoxSpec>& pcie_box_fields() {
  using Spec = PcieBoxSpec;
  static const FieldTable<Spec> kTable = [] {
    FieldTable<Spec> table("PcieBox");
    table.add("gpus", &Spec::gpus, Limits::between(1, 64),
              {.help = "GPUs of the box.", .rules = "A multiple of gpus_per_switch x sockets."});
    table.add("gpus_per_switch", &Spec::gpus_per_switch, Limits::between(1, 64),
              {.help = "GPUs under a PCIe switch, which share its port to the socket."});
    table.add("sockets", &Spec::sockets, Limits::between(1, 2), {.help = "Processor sockets."});
    table.add("gpu_bandwidth", &Spec::gpu_bandwidth, Limits::positive(),
              {.help = "Bandwidth of each PCIe link, one way.",
               .advice = "32GB/s of PCIe 4.0 x16, 64GB/s of 5.0."});
    table.add("socket_bandwidth", &Spec::socket_bandwidth, Limits::positive(),
              {.help = "Bandwidth between the two sockets, one way.",
               .advice = "Machines differ much; the default is assumed."});
    table.add(
        "link_latency", &Spec::link_latency, latency_limits(),
        {.help = "Latency of each link.",
         .advice =
             "Left out of a file, that of its kind of link is assumed, and the report says so."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
