// Router returns the links that a message takes. Routes are computed on demand (there is no table
// of all pairs) and are deterministic: the same arguments give the same route.

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/base/ids.h"

namespace stepsim {

// Returns true for a link that is down, by its LinkId in the fabric that the router was made for.
using IsDown = std::function<bool(LinkId)>;

class Router {
 public:
  virtual ~Router() = default;

  // Appends to `out` the links from `from` to `to`, in order; nothing if they are the same node.
  // `flow_key` distinguishes flows of one pair, for routers that spread them over equal paths. A
  // route contains no link twice. REQUIRES: from and to are chips of the router's fabric.
  virtual void route(NodeId from, NodeId to, std::uint64_t flow_key,
                     std::vector<LinkId>& out) const = 0;

  // The same as route() while some links are down. If a pair has several equal paths, the router
  // chooses among the intact ones by the same rule. If there is none, or the pair has only one
  // path, the route may name links that are down: the caller must check.
  virtual void route_around(NodeId from, NodeId to, std::uint64_t flow_key,
                            const IsDown& /*is_down*/, std::vector<LinkId>& out) const {
    route(from, to, flow_key, out);
  }
};

}  // namespace stepsim
