#include "experiment/cluster_fields.h"

#include "sim/chips/chip_fields.h"
#include "sim/collectives/library_fields.h"
#include "sim/fields/quantity_field.h"
#include "sim/hardware/host_fields.h"
#include "topology/add_kinds.h"

namespace stepsim {
namespace {

constexpr auto kTopologyOf = [](auto& spec) -> auto& {
  return spec.topology;
};

void add_parts(FieldTable<ClusterSpec>& table) {
  table.theme("Parts");
  table.add("name", &ClusterSpec::name, {.help = "The cluster's name in results."});
  table.group("chip", &ClusterSpec::chip, chip_fields(),
              {.help = "The chips of the cluster, as in chip { catalog: \"h100-sxm\" }.",
               .required = true,
               .see = "stepsim help chip"});
  table.group(
      "host", &ClusterSpec::host, host_fields(),
      {.help =
           "The machine that chips are attached to. Its fields override those of the chip's host.",
       .advice = "Offload needs one.",
       .see = "stepsim help host"});
  table.group("library", &ClusterSpec::library, library_fields(),
              {.help = "The communication library.",
               .advice = "library { catalog: \"ideal\" } counts links alone.",
               .unset = "the chip's",
               .see = "stepsim help library"});
  table.add(
      "switch_adders", &ClusterSpec::switch_adders, Limits::positive().or_zero(),
      {.help = "Bytes of operands that each switch adds up per second.",
       .advice = "Give it to see the effect of a switch's limited reduction rate (SHARP, NVLS).",
       .unset = "no limit"});
  table.group("faults", &ClusterSpec::faults, fault_fields(),
              {.help = "Links that are slow or down."});
}

}  // namespace

const FieldTable<ClusterSpec>& cluster_fields() {
  static const FieldTable<ClusterSpec> kTable = [] {
    FieldTable<ClusterSpec> table("Cluster");
    add_parts(table);
    table.theme("Topologies", "A cluster has exactly one.");
    add_kinds(table, kTopologyOf);
    table.alternative<ComposedSpec>(
        "composed", kTopologyOf, composed_fields(),
        {.help = "Domains inside a fabric, pods of those in another, and so on.",
         .see = "stepsim help topologies composed"});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
