// link_kinds() sorts links by what they join, so that a table can speak of "node*.gpu* >
// node*.nvswitch" instead of thousands of links.

#pragma once

#include <string>
#include <vector>

#include "sim/hardware/cluster.h"

namespace stepsim {

// By LinkId: the names of both ends with all numbers replaced by "*"; between chips of a cluster
// also the level along which they differ ("chip* > chip* along x").
std::vector<std::string> link_kinds(const Fabric& fabric, const Places& places);

}  // namespace stepsim
