// link_kinds() sorts links by the nodes that they join, so that a table can show "node*.gpu* >
// node*.nvswitch" instead of thousands of links.

#pragma once

#include <string>
#include <vector>

#include "sim/hardware/cluster.h"

namespace stepsim {

// Returns, by NodeId, the nodes' names with all numbers replaced by "*": "node*.gpu*".
std::vector<std::string> node_kinds(const Fabric& fabric);

// Returns, by LinkId, the names of both ends with all numbers replaced by "*". Between chips of a
// cluster it adds the level along which they differ ("chip* > chip* along x").
std::vector<std::string> link_kinds(const Fabric& fabric, const Places& places);

}  // namespace stepsim
