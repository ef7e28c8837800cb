// Cluster is the hardware of a run: the network, the place of each chip in it, and the data of a
// chip. It is read-only.

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
  CommunicationLibrary library{};  // the ideal library unless given
  Hosts hosts{};                   // no hosts unless given
  // Adders, indexed by NodeId. A switch with limited reduction throughput has a link here, and
  // every byte that it adds up takes that link. Empty: switches add at the rate at which bytes
  // arrive.
  std::vector<std::optional<LinkId>> adders{};
};

// Gives every switch of the fabric an adder that takes in `operands` bytes per second. All sums
// that a switch computes at the same time share its adder.
std::vector<std::optional<LinkId>> add_adders(Bandwidth operands, Fabric& fabric);

}  // namespace stepsim
