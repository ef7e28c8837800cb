#include "sim/fields/field.h"
#include "sim/fields/quantity_field.h"
#include "topology/graph/latency_limits.h"
#include "topology/kinds/routing_fields.h"
#include "topology/kinds/switched/leaf_spine.h"

namespace stepsim {

const FieldTable<LeafSpineSpec>& leaf_spine_fields() {
  using Spec = LeafSpineSpec;
  static const FieldTable<Spec> kTable = [] {
    FieldTable<Spec> table("LeafSpine");
    table.add(
        "leaves", &Spec::leaves, Limits::between(1, 1 << 16),
        {.help = "Leaves.",
         .unset = "in a composed cluster, as many as its hosts need; otherwise it must be given"});
    table.add("hosts_per_leaf", &Spec::hosts_per_leaf, Limits::between(1, 1 << 16),
              {.help = "Hosts on a leaf."});
    table.add("spines", &Spec::spines, Limits::between(0, 1 << 16),
              {.help = "Spines; every leaf is cabled to each.",
               .rules = "At least 1 where there are several leaves."});
    table.add("host_bandwidth", &Spec::host_bandwidth, Limits::positive(),
              {.help = "Bandwidth of a host's link, one way.", .required = true});
    table.add("oversubscription", &Spec::oversubscription, Limits::between(1, 1 << 16),
              {.help = "Bandwidth down over bandwidth up of a leaf.",
               .advice = "Above 1 the uplinks are thinner: cheaper, and slower between leaves."});
    table.add(
        "link_latency", &Spec::link_latency, latency_limits(),
        {.help = "Latency of each link.",
         .advice =
             "Left out of a file, that of its kind of link is assumed, and the report says so."});
    table.add("switch_ports", &Spec::switch_ports, Limits::at_least(1),
              {.help = "Ports of a switch.",
               .rules = "Hosts, spines and leaves fit.",
               .unset = "not checked"});
    add_routing(table, &Spec::routing);
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
