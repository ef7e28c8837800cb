// link_kinds() sorts links by the nodes that they join, so that a table can show "node*.gpu* >
// node*.nvswitch" instead of thousands of links.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/hardware/cluster.h"

namespace stepsim {

// Returns, by NodeId, the nodes' names with all numbers replaced by "*": "node*.gpu*".
std::vector<std::string> node_kinds(const Fabric& fabric);

struct LinkKinds {
  std::vector<std::string> names{};      // in order
  std::vector<std::uint32_t> of_link{};  // by LinkId: its name's number

  const std::string& name_of(LinkId link) const { return names[of_link[link.index()]]; }
};

// A kind is the names of both ends with all numbers replaced by "*". Between chips of a cluster it
// has the levels along which they differ, too ("chip* > chip* along x"). Linear in the links.
LinkKinds link_kinds(const Fabric& fabric, const Places& places);

}  // namespace stepsim
