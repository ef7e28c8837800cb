#include "sim/fields/field.h"
#include "sim/fields/quantity_field.h"
#include "topology/graph/latency_limits.h"
#include "topology/kinds/torus/tpu_slice.h"

namespace stepsim {

template <>
inline constexpr std::size_t kValuesOf<TpuGeneration> = kTpuGenerations.size();

const FieldTable<TpuSliceSpec>& tpu_slice_fields() {
  using Spec = TpuSliceSpec;
  static const FieldTable<Spec> kTable = [] {
    static const FieldTable<TpuHosts> kHosts = [] {
      FieldTable<TpuHosts> hosts("Hosts");
      hosts.add("bandwidth", &TpuHosts::bandwidth, Limits::positive(),
                {.help = "Bandwidth of PCIe between a chip and its host, one way.",
                 .unset = "the generation's"});
      hosts.add("latency", &TpuHosts::latency, latency_limits(), {.help = "Latency of that."});
      return hosts;
    }();
    FieldTable<Spec> table("TpuSlice");
    table.add(
        "generation", &Spec::generation,
        {.help = "The TPU: it decides which shapes there are, which axes wrap, and the bandwidths.",
         .required = true});
    table.add("shape", &Spec::shape,
              {.help = "Chips along x and y, and z if the generation has it.",
               .rules = "A shape that the generation has; the message names the nearest ones."});
    table.add("twisted", &Spec::twisted,
              {.help = "The slice is a twisted torus.",
               .advice = "On v4 and v5p it makes all-to-alls faster.",
               .rules = "Whole cubes as K x K x 2K or K x 2K x 2K."});
    table.add("wraps", &Spec::wraps,
              {.help = "The wraparound that you expect of each axis: true,true,false. It changes "
                       "nothing, but a slice that differs is refused.",
               .unset = "not checked"});
    table.add(
        "link_bandwidth", &Spec::link_bandwidth, Limits::positive(),
        {.help = "Bandwidth of a link between neighbours, one way.", .unset = "the generation's"});
    table.add(
        "link_latency", &Spec::link_latency, latency_limits(),
        {.help = "Latency of a hop.",
         .advice =
             "Left out of a file, that of its kind of link is assumed, and the report says so."});
    table.add("optical_latency", &Spec::optical_latency, latency_limits(),
              {.help = "Latency of a hop between cubes, over optical switches.",
               .rules = "v4 and v5p only.",
               .unset = "link_latency"});
    table.group("hosts", &Spec::hosts, kHosts,
                {.help = "The hosts of the slice, as nodes of the network."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
