// PathTable knows all shortest paths of a fabric, by links: for a node and a destination the links
// that lead on. A path is a number: at a node with n such links the next one is number % n of them,
// and number / n decides further on. So the numbers from 0 to count - 1 are all the shortest paths
// where every node at a distance has as many ways on, as in a fat tree; any number is some of them.
//
// The table of a destination is made when it is first asked for: O(nodes + links) time and memory.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/fabric.h"

namespace stepsim {

class PathTable {
 public:
  explicit PathTable(const Fabric& fabric);

  // Returns the links of shortest paths from `at` to `to`; none if there is no way or it is there.
  std::span<const LinkId> next(NodeId at, NodeId to) {
    const Ways& ways = ways_to(to);
    return {ways.links.data() + ways.begin[at.index()],
            ways.begin[at.index() + 1] - ways.begin[at.index()]};
  }
  // Takes the choice of this node off the number.
  LinkId take(NodeId at, NodeId to, std::uint32_t& path) {
    const std::span<const LinkId> ways = next(at, to);
    if (ways.size() == 1) return ways.front();
    const auto count = static_cast<std::uint32_t>(ways.size());
    const LinkId link = ways[path % count];
    path /= count;
    return link;
  }
  // The same for tables by destination: every switch takes off as much as the widest one would, so
  // that one with a link down leaves the choices behind it as they are.
  LinkId take_by_table(NodeId at, NodeId to, std::uint32_t& path) {
    const std::span<const LinkId> ways = next(at, to);
    const LinkId link = ways[path % ways.size()];
    path /= ways_[to.index()].widest;
    return link;
  }
  // Returns the number of shortest paths, at most `most`.
  std::uint32_t count(NodeId from, NodeId to, std::uint32_t most);

 private:
  struct Ways {
    std::vector<std::uint32_t> begin;  // by node, in links; empty: not made yet
    std::vector<LinkId> links;
    std::vector<std::uint32_t> distance;  // by node
    std::uint32_t widest = 1;             // most links at a node
  };

  const Ways& ways_to(NodeId to) {
    Ways& ways = ways_[to.index()];
    if (ways.begin.empty()) make(to, ways);
    return ways;
  }
  void make(NodeId to, Ways& ways) const;

  const Fabric& fabric_;
  std::vector<std::vector<LinkId>> from_;  // by node: the links that leave it
  std::vector<std::vector<LinkId>> into_;
  std::vector<Ways> ways_;  // by destination
};

}  // namespace stepsim
