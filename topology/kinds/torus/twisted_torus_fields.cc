#include "sim/fields/field.h"
#include "sim/fields/quantity_field.h"
#include "topology/graph/latency_limits.h"
#include "topology/kinds/torus/twisted_torus.h"

namespace stepsim {

const FieldTable<TwistedTorusSpec>& twisted_torus_fields() {
  using Spec = TwistedTorusSpec;
  static const FieldTable<Spec> kTable = [] {
    FieldTable<Spec> table("TwistedTorus");
    table.add("shape", &Spec::shape,
              {.help = "Chips along x, y and z: 4,4,8.",
               .rules = "K x K x 2K or K x 2K x 2K in any order, K from 2 to 64."});
    table.add("link_bandwidth", &Spec::link_bandwidth, Limits::positive(),
              {.help = "Bandwidth of a link between neighbours, one way.",
               .advice = "45GB/s of v4.",
               .required = true});
    table.add(
        "link_latency", &Spec::link_latency, latency_limits(),
        {.help = "Latency of a hop.",
         .advice =
             "Left out of a file, that of its kind of link is assumed, and the report says so."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
