#include "sim/fields/field.h"
#include "sim/fields/quantity_field.h"
#include "topology/graph/latency_limits.h"
#include "topology/kinds/routing_fields.h"
#include "topology/kinds/switched/nvlink_domain.h"

namespace stepsim {

const FieldTable<NvlinkDomainSpec>& nvlink_domain_fields() {
  using Spec = NvlinkDomainSpec;
  static const FieldTable<Spec> kTable = [] {
    FieldTable<Spec> table("NvlinkDomain");
    table.add("gpus", &Spec::gpus, Limits::between(1, 1 << 16),
              {.help = "GPUs of the domain.", .advice = "8 in an HGX, 72 in GB200 NVL72."});
    table.add("gpu_bandwidth", &Spec::gpu_bandwidth, Limits::positive(),
              {.help = "Bandwidth of all links of a GPU together, one way.",
               .advice = "300GB/s of A100, 450GB/s of H100, 900GB/s of B200."});
    table.add(
        "link_latency", &Spec::link_latency, latency_limits(),
        {.help = "Latency between a GPU and a switch, either way.",
         .advice =
             "Left out of a file, that of its kind of link is assumed, and the report says so."});
    table.add(
        "links_per_switch", &Spec::links_per_switch,
        {.help = "Links of each GPU to each switch: 5,4,4,5 in an HGX H100. Empty: one crossbar.",
         .advice = "Give it for many small messages or sprayed packets: a message then takes one "
                   "switch. A crossbar is right for large transfers, which NCCL cuts into pieces "
                   "over all links."});
    table.add("switch_ports", &Spec::switch_ports, Limits::at_least(1),
              {.help = "Links that a switch takes.",
               .rules = "gpus x the links to it fit.",
               .unset = "not checked"});
    add_routing(table, &Spec::routing);
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
