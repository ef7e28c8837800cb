#include "sim/fields/field.h"
#include "sim/fields/quantity_field.h"
#include "topology/composed.h"
#include "topology/graph/latency_limits.h"
#include "topology/kinds/graph_names.h"

namespace stepsim {
namespace {

FieldTable<TierSpec> make_tier_fields() {
  FieldTable<TierSpec> table("Tier");
  table.add("name", &TierSpec::name,
            {.help = "Name of a joined block, and of its level in plan.map.",
             .rules = "No two tiers have the same name."});
  table.add("count", &TierSpec::count, Limits::at_least(1),
            {.help = "How many blocks are joined.", .required = true});
  table.group("fabric", &TierSpec::fabric, block_fields(),
              {.help = "The topology that joins them; its places are cards, or hosts.",
               .rules = "May be left out if count is 1.",
               .see = "stepsim help topologies KIND"});
  table.add("chips_per_host", &TierSpec::chips_per_host, Limits::at_least(1),
            {.help = "Chips that share a host with one card. 1: every chip has its own card.",
             .rules = "Divides the chips of a block."});
  table.add(
      "host_bandwidth", &TierSpec::host_bandwidth, Limits::positive(),
      {.help = "Bandwidth between a chip and its host, one way. Of a pcie_box: between its socket "
               "and the host's card, as a GPU has no second slot.",
       .rules = "Must be given where chips share a host.",
       .unset = "no host"});
  table.add("host_latency", &TierSpec::host_latency, latency_limits(),
            {.help = "Latency between them."});
  table.add("cross_rail", &TierSpec::cross_rail,
            {.help = "How a chip sends to another rail. pxn: inside its block to the chip of that "
                     "rail first, as NCCL does. spine: out of its own card.",
             .rules = "Counts with rail_fabric."});
  table.add("planes", &TierSpec::planes, Limits::between(1, 16),
            {.help = "Copies of the fabric; every gateway has a port in each.",
             .advice = "2 is a dual-plane network."});
  return table;
}

}  // namespace

const FieldTable<TierSpec>& tier_fields() {
  static const FieldTable<TierSpec> kTable = make_tier_fields();
  return kTable;
}

const FieldTable<ComposedSpec>& composed_fields() {
  static const FieldTable<ComposedSpec> kTable = [] {
    FieldTable<ComposedSpec> table("Composed");
    table.group("domain", &ComposedSpec::domain, block_fields(),
                {.help = "The topology that is repeated, such as nvlink_domain.",
                 .required = true,
                 .see = "stepsim help topologies KIND"});
    table.list("tiers", &ComposedSpec::tiers, tier_fields(),
               {.help = "What joins domains, then what joins those, innermost first."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
