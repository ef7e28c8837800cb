// HostExits is a second face of a block's router, for blocks through which chips reach their hosts:
// a GPU in a PCIe box has one slot, so what it sends to a network card goes over the same links as
// what it sends to other GPUs. join() then attaches hosts where the block says, and adds no link
// from a chip to its host.

#pragma once

#include <vector>

#include "sim/base/ids.h"

namespace stepsim {

class HostExits {
 public:
  virtual ~HostExits() = default;

  // Returns the node of the block at which the host of a chip is attached. REQUIRES: all nodes are
  // those of the block by itself.
  virtual NodeId exit_of(NodeId chip) const = 0;

  // Append the links between a chip and an exit, which may be that of another chip.
  virtual void route_out(NodeId chip, NodeId exit, std::vector<LinkId>& out) const = 0;
  virtual void route_in(NodeId exit, NodeId chip, std::vector<LinkId>& out) const = 0;
};

}  // namespace stepsim
