#include "sim/fields/field.h"
#include "topology/faults.h"

namespace stepsim {

const FieldTable<Faults>& fault_fields() {
  static const FieldTable<Faults> kTable = [] {
    static const FieldTable<LinkFault> kLink = [] {
      FieldTable<LinkFault> link("Link");
      link.add("link", &LinkFault::link,
               {.help = "Links by their ends: \"a>b\" for one direction, \"a-b\" for both, with * "
                        "for any characters. `stepsim topology CLUSTER` shows names."});
      link.add("capacity", &LinkFault::capacity, Limits::fraction(),
               {.help = "Share of the bandwidth that is left.",
                .rules = "Either this or down.",
                .unset = "the link is down"});
      link.add("down", &LinkFault::down,
               {.help = "The links are removed, and routes go round them."});
      return link;
    }();
    FieldTable<Faults> table("Faults");
    table.list("links", &Faults::links, kLink,
               {.help = "Links that are slow or down. The worst fault of a link counts."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
