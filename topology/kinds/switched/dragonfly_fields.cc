#include "sim/fields/field.h"
#include "sim/fields/quantity_field.h"
#include "topology/graph/latency_limits.h"
#include "topology/kinds/switched/dragonfly.h"

namespace stepsim {

std::string_view name_of(DragonflyRouting routing) {
  return routing == DragonflyRouting::kMinimal ? "minimal" : "valiant";
}
template <>
inline constexpr std::size_t kValuesOf<DragonflyRouting> = 2;

const FieldTable<DragonflySpec>& dragonfly_fields() {
  using Spec = DragonflySpec;
  static const FieldTable<Spec> kTable = [] {
    FieldTable<Spec> table("Dragonfly");
    table.add("hosts_per_router", &Spec::hosts_per_router, Limits::between(1, 1024),
              {.help = "Hosts p of a router.", .advice = "A balanced dragonfly has a = 2p = 2h."});
    table.add("routers_per_group", &Spec::routers_per_group, Limits::between(1, 1024),
              {.help = "Routers a of a group, all cabled to each other."});
    table.add("global_links_per_router", &Spec::global_links_per_router, Limits::between(1, 1024),
              {.help = "Links h of a router to other groups."});
    table.add(
        "groups", &Spec::groups, Limits::at_least(2),
        {.help = "Groups, every one cabled to each other one.",
         .rules = "At most a x h + 1.",
         .unset = "in a composed cluster, as many as its hosts need; otherwise it must be given"});
    table.add("host_bandwidth", &Spec::host_bandwidth, Limits::positive(),
              {.help = "Bandwidth of a host's link, one way.", .required = true});
    table.add("local_bandwidth", &Spec::local_bandwidth, Limits::positive(),
              {.help = "Bandwidth of a link inside a group, one way.", .required = true});
    table.add("global_bandwidth", &Spec::global_bandwidth, Limits::positive(),
              {.help = "Bandwidth of a link between groups, one way.", .required = true});
    table.add(
        "local_latency", &Spec::local_latency, latency_limits(),
        {.help = "Latency of host and local links.",
         .advice =
             "Left out of a file, that of its kind of link is assumed, and the report says so."});
    table.add(
        "global_latency", &Spec::global_latency, latency_limits(),
        {.help = "Latency of a link between groups.",
         .advice =
             "Left out of a file, that of its kind of link is assumed, and the report says so."});
    table.add("switch_ports", &Spec::switch_ports, Limits::at_least(1),
              {.help = "Ports of a router.",
               .rules = "Hosts, local and global links fit.",
               .unset = "not checked"});
    table.add("routing", &Spec::routing,
              {.help = "minimal: the shortest way. valiant: first to a random other group.",
               .advice = "valiant halves the best throughput and avoids the worst case, in which "
                         "all traffic of a group goes to one other group."});
    table.add("routing_seed", &Spec::routing_seed,
              {.help = "Seed of the random groups of valiant.",
               .advice = "Another seed shows how much a result depends on chance."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
