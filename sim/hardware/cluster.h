// Cluster is the hardware of a run: the network, where each chip sits in it, and what each chip
// can do. Read-only.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/chips/chip_spec.h"
#include "sim/collectives/library.h"
#include "sim/hardware/hosts.h"
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
  Hosts hosts{};                   // none unless given
  // By NodeId. A switch whose adding is limited has a link here, and every byte that it adds up
  // takes that link. Empty: switches add as fast as bytes come.
  std::vector<std::optional<LinkId>> adders{};
};

// Gives every switch of the fabric an adder that takes in `operands` bytes a second. All sums that
// a switch makes at one time share its adder.
std::vector<std::optional<LinkId>> add_adders(Bandwidth operands, Fabric& fabric);

}  // namespace stepsim
