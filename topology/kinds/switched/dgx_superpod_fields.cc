#include "sim/fields/field.h"
#include "sim/fields/quantity_field.h"
#include "topology/graph/latency_limits.h"
#include "topology/kinds/graph_names.h"
#include "topology/kinds/routing_fields.h"
#include "topology/kinds/switched/dgx_superpod.h"

namespace stepsim {

const FieldTable<DgxSuperPodSpec>& dgx_superpod_fields() {
  using Spec = DgxSuperPodSpec;
  static const FieldTable<Spec> kTable = [] {
    FieldTable<Spec> table("DgxSuperpod");
    table.add("nodes", &Spec::nodes, Limits::at_least(1),
              {.help = "Nodes of the cluster.",
               .rules = "The switches must have the ports for them.",
               .required = true});
    table.add("gpus_per_node", &Spec::gpus_per_node, Limits::between(1, 1024),
              {.help = "GPUs of a node, which is also how many rails there are.",
               .advice = "8 in every DGX."});
    table.add("nodes_per_scalable_unit", &Spec::nodes_per_scalable_unit, Limits::at_least(1),
              {.help = "Nodes of a scalable unit: leaf ports that are used downwards.",
               .advice = "Fewer nodes need more leaves and spines for as many GPUs."});
    table.add("nvlink_bandwidth", &Spec::nvlink_bandwidth, Limits::positive(),
              {.help = "Bandwidth of a GPU to its NVSwitch, one way.",
               .advice = "450GB/s of NVLink 4 (H100), the default; 900GB/s of NVLink 5 (B200)."});
    table.add(
        "nvlink_latency", &Spec::nvlink_latency, latency_limits(),
        {.help = "Latency between a GPU and its NVSwitch, either way.",
         .advice =
             "Left out of a file, that of its kind of link is assumed, and the report says so."});
    table.add("nic_bandwidth", &Spec::nic_bandwidth, Limits::positive(),
              {.help = "Bandwidth of each cable of the network, one way: of a GPU's card too.",
               .advice = "400Gbps (50GB/s) of NDR, the default."});
    table.add(
        "network_link_latency", &Spec::network_link_latency, latency_limits(),
        {.help = "Latency of each link of the network.",
         .advice =
             "Left out of a file, that of its kind of link is assumed, and the report says so."});
    table.add("switch_ports", &Spec::switch_ports, Limits::between(2, 1024),
              {.help = "Ports of each switch.",
               .advice = "Larger switches reach more GPUs before a core tier is needed."});
    table.add(
        "spines", &Spec::spines, Limits::at_least(1),
        {.help = "Spines of each pod.",
         .advice =
             "Give fewer for a tapered network: leaves use the ports that there are for them.",
         .unset = "those that all uplinks need"});
    table.add(
        "oversubscription", &Spec::oversubscription, Limits::at_least(1),
        {.help = "Ports down over ports up of a leaf.",
         .advice = "2 halves the uplinks: cheaper, and slower between nodes of different leaves."});
    table.add("cross_rail", &Spec::cross_rail,
              {.help = "How a GPU sends to another rail. pxn: over NVLink to the GPU of that rail "
                       "first, as NCCL does. spine: out of its own card and over the spines.",
               .advice = "spine loads the spines, pxn the NVSwitch."});
    add_routing(table, &Spec::routing);
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
