// Router answers which links a message takes. Routes are computed on demand (there is no table of
// all pairs) and are deterministic: the same arguments give the same route.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.h"

namespace stepsim {

class Router {
 public:
  virtual ~Router() = default;

  // Appends to `out` the links from `from` to `to`, in order; nothing if they are the same node.
  // `flow_key` tells flows of one pair apart for routers that spread them over equal paths.
  // A route holds no link twice. REQUIRES: from and to are chips of the router's fabric.
  virtual void route(NodeId from, NodeId to, std::uint64_t flow_key,
                     std::vector<LinkId>& out) const = 0;
};

}  // namespace stepsim
