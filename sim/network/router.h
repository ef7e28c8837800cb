// Router answers which links a message takes. Routes are computed on demand (there is no table of
// all pairs) and are deterministic: the same arguments give the same route.

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/base/ids.h"

namespace stepsim {

// True for a link that is down, by its LinkId in the fabric that the router was made for.
using IsDown = std::function<bool(LinkId)>;

class Router {
 public:
  virtual ~Router() = default;

  // Appends to `out` the links from `from` to `to`, in order; nothing if they are the same node.
  // `flow_key` tells flows of one pair apart for routers that spread them over equal paths.
  // A route holds no link twice. REQUIRES: from and to are chips of the router's fabric.
  virtual void route(NodeId from, NodeId to, std::uint64_t flow_key,
                     std::vector<LinkId>& out) const = 0;

  // As route(), while some links are down. A router that has several equal paths for a pair chooses
  // among those without such a link, by the same rule. Where there is none the route may name links
  // that are down, as it may for routers that have one path for a pair: the caller looks.
  virtual void route_around(NodeId from, NodeId to, std::uint64_t flow_key,
                            const IsDown& /*is_down*/, std::vector<LinkId>& out) const {
    route(from, to, flow_key, out);
  }
};

}  // namespace stepsim
