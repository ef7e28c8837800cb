// Cluster is the hardware of a run: the network, where each chip sits in it, and what each chip
// can do. Read-only.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/chips/chip_spec.h"
#include "sim/collectives/library.h"
#include "sim/network/fabric.h"
#include "sim/network/places.h"
#include "sim/network/router.h"

namespace stepsim {

struct Cluster {
  Fabric fabric;
  std::unique_ptr<Router> router;
  Places places;                   // of every chip, by chip number
  ChipSpec chip;                   // all chips are alike
  CommunicationLibrary library{};  // ideal unless given
};

}  // namespace stepsim
