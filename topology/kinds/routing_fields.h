// add_routing() adds the rows of a PathChoice to the fields of a topology.

#pragma once

#include "sim/fields/field.h"
#include "topology/kinds/graph_names.h"

namespace stepsim {

template <class Spec>
void add_routing(FieldTable<Spec>& table, PathChoice Spec::*routing) {
  table.add_inner("routing", routing, &PathChoice::rule, {},
                  {.help = "Which of several equal paths a message takes. destination: that of the "
                           "destination's number. ecmp: by a hash of source, destination and flow. "
                           "adaptive: over all of them, as switches that see their queues do.",
                   .advice = "adaptive where the fabric has it (InfiniBand with adaptive routing, "
                             "Spectrum-X). ecmp shows what unlucky hashes cost."});
  table.add_inner("routing_seed", routing, &PathChoice::seed, {},
                  {.help = "Seed of ecmp's hash.",
                   .advice = "Another seed shows how much a result depends on chance."});
}

}  // namespace stepsim
