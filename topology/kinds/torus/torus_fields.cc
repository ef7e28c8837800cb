#include "sim/fields/field.h"
#include "sim/fields/quantity_field.h"
#include "topology/graph/latency_limits.h"
#include "topology/kinds/torus/torus.h"

namespace stepsim {

const FieldTable<TorusSpec>& torus_fields() {
  using Spec = TorusSpec;
  static const FieldTable<Spec> kTable = [] {
    static const FieldTable<TorusAxis> kAxis = [] {
      FieldTable<TorusAxis> axis("Axis");
      axis.add("size", &TorusAxis::size, Limits::at_least(1),
               {.help = "Chips along the axis.", .required = true});
      axis.add("wraps", &TorusAxis::wraps,
               {.help = "The axis closes to a ring.",
                .advice = "Rings halve the way and double the bisection.",
                .rules = "An axis that wraps has at least 3 chips."});
      return axis;
    }();
    FieldTable<Spec> table("Torus");
    table.list("axes", &Spec::axes, kAxis,
               {.help = "The axes x, y and z.", .rules = "One to three."});
    table.add("link_bandwidth", &Spec::link_bandwidth, Limits::positive(),
              {.help = "Bandwidth of a link between neighbours, one way.",
               .advice = "90GB/s of v5p.",
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
