#include "sim/fields/field.h"
#include "sim/fields/quantity_field.h"
#include "topology/graph/latency_limits.h"
#include "topology/kinds/routing_fields.h"
#include "topology/kinds/switched/fat_tree.h"

namespace stepsim {

const FieldTable<FatTreeSpec>& fat_tree_fields() {
  using Spec = FatTreeSpec;
  static const FieldTable<Spec> kTable = [] {
    FieldTable<Spec> table("FatTree");
    table.add("switch_ports", &Spec::switch_ports, Limits::between(2, 1024),
              {.help = "Ports k of every switch: k^2 / 2 hosts in two tiers, k^3 / 4 in three.",
               .advice = "162 suffice for 2^20 hosts in three tiers.",
               .rules = "Even. At most 2^20 hosts, or as many as a composed cluster joins.",
               .unset = "in a composed cluster, the smallest number that suffices; otherwise it "
                        "must be given"});
    table.add("tiers", &Spec::tiers, Limits::between(2, 3), {.help = "Tiers of switches."});
    table.add("taper", &Spec::taper, Limits::between(1, 1024),
              {.help = "The links of the top tier have 1 / taper of the bandwidth.",
               .advice = "1 is full bisection."});
    table.add("link_bandwidth", &Spec::link_bandwidth, Limits::positive(),
              {.help = "Bandwidth of each link, one way.", .required = true});
    table.add(
        "link_latency", &Spec::link_latency, latency_limits(),
        {.help = "Latency of each link.",
         .advice =
             "Left out of a file, that of its kind of link is assumed, and the report says so."});
    add_routing(table, &Spec::routing);
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
