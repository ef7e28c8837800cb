#include "sim/fields/field.h"
#include "sim/fields/quantity_field.h"
#include "topology/graph/latency_limits.h"
#include "topology/kinds/explicit_graph.h"
#include "topology/kinds/graph_names.h"

namespace stepsim {
namespace {

FieldTable<ExplicitNode> make_node_fields() {
  FieldTable<ExplicitNode> table("Node");
  table.add("name", &ExplicitNode::name,
            {.help = "Its name.", .rules = "Letters, digits, '.', '_' and '-'."});
  table.add("kind", &ExplicitNode::kind, {.help = "What it is; only chips compute."});
  return table;
}

FieldTable<ExplicitLink> make_link_fields() {
  FieldTable<ExplicitLink> table("Link");
  table.add("from", &ExplicitLink::from, {.help = "The node at one end."});
  table.add("to", &ExplicitLink::to, {.help = "The node at the other end."});
  table.add("bandwidth", &ExplicitLink::bandwidth, Limits::positive(),
            {.help = "Its bandwidth, one way; parallel cables are one link of their sum.",
             .required = true});
  table.add("latency", &ExplicitLink::latency, latency_limits(), {.help = "Its latency."});
  table.add("one_way", &ExplicitLink::one_way, {.help = "It leads from `from` to `to` only."});
  return table;
}

// A route is given as the names of its nodes.
FieldTable<std::vector<std::string>> make_route_fields() {
  using Route = std::vector<std::string>;
  FieldTable<Route> table("Route");
  table.add(
      "nodes",
      FieldSyntax<Route>{
          .read =
              [](std::string_view text, Route& route) {
                route = *Text<Route>::read(text);
                return std::vector<std::string>{};
              },
          .write = [](const Route& route) { return std::optional(Text<Route>::write(route)); },
          .accepts = [] { return std::string("names of nodes, separated by commas"); }},
      {.help = "Every node of the route, in order."});
  return table;
}

FieldTable<ExplicitLevel> make_level_fields() {
  FieldTable<ExplicitLevel> table("Level");
  table.add("name", &ExplicitLevel::name, {.help = "Its name in plan.map."});
  table.add("size", &ExplicitLevel::size, Limits::at_least(1),
            {.help = "How many members of the level below it holds.", .required = true});
  table.add(
      "kind", &ExplicitLevel::kind,
      {.help = "What its members are. Chips and packages (sockets, PCIe switches) are parts of "
               "a node; nodes are joined by the network. Unset: derived from the links."});
  return table;
}

}  // namespace

const FieldTable<ExplicitGraphSpec>& explicit_graph_fields() {
  using Spec = ExplicitGraphSpec;
  static const FieldTable<Spec> kTable = [] {
    static const FieldTable<ExplicitNode> kNode = make_node_fields();
    static const FieldTable<ExplicitLink> kLink = make_link_fields();
    static const FieldTable<std::vector<std::string>> kRoute = make_route_fields();
    static const FieldTable<ExplicitLevel> kLevel = make_level_fields();
    FieldTable<Spec> table("ExplicitGraph");
    table.list("nodes", &Spec::nodes, kNode,
               {.help = "Every node. Chips are numbered in the order of the list."});
    table.list("links", &Spec::links, kLink, {.help = "Every link."});
    table.list(
        "routes", &Spec::routes, kRoute,
        {.help = "Routes of pairs that don't take the shortest path.",
         .rules = "Each leads from chip to chip over links that are there; one for a pair."});
    table.add("metric", &Spec::metric,
              {.help = "What the shortest path is: fewest links, or least latency."});
    table.add(
        "routing", &Spec::routing,
        {.help = "Which of several shortest paths a message takes: destination, by its number, "
                 "or ecmp, by a hash of source, destination and flow. Unset: ties go to the "
                 "link that is listed first."});
    table.add("routing_seed", &Spec::routing_seed, {}, {.help = "Seed of ecmp's hash."});
    table.list("levels", &Spec::levels, kLevel,
               {.help = "Levels for plan.map, innermost first. None: one level, chip.",
                .rules = "Their sizes multiply to the number of chips."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
