// BuiltTopology is the result of every builder of this room: the network, the routes of messages,
// and the place of each chip. The three parts may be moved apart: a router keeps its own tables and
// refers to nothing outside itself.
//
// Every builder numbers its chips alike: chip c (Places) is NodeId(c), before all other nodes.

#pragma once

#include <memory>

#include "sim/network/fabric.h"
#include "sim/network/places.h"
#include "sim/network/router.h"

namespace stepsim {

struct BuiltTopology {
  Fabric fabric;
  std::unique_ptr<Router> router;  // never null
  Places places;
};

}  // namespace stepsim
