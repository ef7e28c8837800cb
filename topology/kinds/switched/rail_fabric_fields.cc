#include "sim/fields/field.h"
#include "sim/fields/quantity_field.h"
#include "topology/graph/latency_limits.h"
#include "topology/kinds/routing_fields.h"
#include "topology/kinds/switched/rail_fabric.h"

namespace stepsim {

const FieldTable<RailFabricSpec>& rail_fabric_fields() {
  using Spec = RailFabricSpec;
  static const FieldTable<Spec> kTable = [] {
    FieldTable<Spec> table("RailFabric");
    table.add("nodes", &Spec::nodes, Limits::at_least(1),
              {.help = "Nodes that it joins.",
               .unset = "in a composed cluster, as many as it joins; otherwise it must be given"});
    table.add("rails", &Spec::rails, Limits::between(1, 1024),
              {.help = "Cards of a node, and leaves of a scalable unit."});
    table.add("nodes_per_scalable_unit", &Spec::nodes_per_scalable_unit, Limits::at_least(1),
              {.help = "Nodes of a scalable unit: leaf ports that are used downwards."});
    table.add("nic_bandwidth", &Spec::nic_bandwidth, Limits::positive(),
              {.help = "Bandwidth of each cable, one way.",
               .advice = "400Gbps (50GB/s) of NDR, the default."});
    table.add(
        "link_latency", &Spec::link_latency, latency_limits(),
        {.help = "Latency of each link.",
         .advice =
             "Left out of a file, that of its kind of link is assumed, and the report says so."});
    table.add("switch_ports", &Spec::switch_ports, Limits::between(2, 1024),
              {.help = "Ports of each switch."});
    table.add("spines", &Spec::spines, Limits::at_least(1),
              {.help = "Spines of each pod.",
               .advice = "Give fewer for a tapered network.",
               .unset = "those that all uplinks need"});
    table.add("oversubscription", &Spec::oversubscription, Limits::at_least(1),
              {.help = "Ports down over ports up of a leaf.", .advice = "2 halves the uplinks."});
    add_routing(table, &Spec::routing);
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
