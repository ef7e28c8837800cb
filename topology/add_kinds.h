// add_kinds() adds one row for each kind of topology to the table of a struct that holds a
// topology.

#pragma once

#include <tuple>

#include "sim/fields/field.h"
#include "topology/topology_table.h"

namespace stepsim {

// `get` is a function object that returns the variant of a struct.
template <class Struct, class Get>
void add_kinds(FieldTable<Struct>& table, Get get) {
  std::apply(
      [&]<typename... Kinds>(const Kinds&... kinds) {
        (table.template alternative<typename Kinds::Spec>(
             kinds.name, get, kinds.fields(),
             {.help = kinds.summary, .see = "stepsim help topologies KIND"}),
         ...);
      },
      kTopologyKinds);
}

}  // namespace stepsim
