// pack_trees() lays an all-gather over the links between members: for each member as many trees as
// its shard has pieces, which lead from it to all others and together keep the links busy.
//
//     A piece is one chunk. In every round each link hands on one chunk that the member in front of
//     it has and the one behind it lacks. The way by which a member gets a chunk first is the only
//     one by which it gets it, so the ways of a chunk form a tree. The lengths of the trees need
//     not be alike; what counts is that no link idles while its receiver lacks something.
//
//   ways first      those whose sender has the most that the receiver lacks
//   chunks first    those that the fewest neighbours of the receiver have or are about to get, then
//                   those that the fewest members have. They are the ones that no one else can hand
//                   on, so that little crosses a narrow cut twice
//   links of unequal width are cut into slots as wide as the narrowest link (a little narrower,
//   where widths are no multiples of it): a link of three slots hands on three chunks a round
//
// (Won and others 2024, TACOS: greedy matching of links and chunks over time.) A packing of
// spanning trees that reaches the bound of the cuts exactly exists (Edmonds 1973; Zhao and others
// 2024, ForestColl). The greedy one is within 0 to 8 % of it on tori, hypercubes, HammingMesh,
// fully connected, circulant and random graphs, and DGX-1, if a shard has pieces enough
// (tests/sim/packed_trees_test.cc).
//
// A reduce-scatter is the all-gather over the reversed ways, backwards in time.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/collective.h"

namespace stepsim {

struct PackedTrees {
  struct Send {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t chunk = 0;  // piece p of member m's shard: m * pieces + p
    std::uint32_t round = 0;
    std::uint32_t from_port = 0;  // slot among those of all links that leave `from`
    std::uint32_t to_port = 0;    // slot among those of all links that lead to `to`
  };
  std::uint32_t pieces = 1;
  std::uint32_t rounds = 0;
  std::vector<Send> sends;  // by round; members x (members - 1) x pieces
  double length = 0;        // in times of one chunk over the narrowest link
};

// REQUIRES: the ways join all members in both directions. O(members^3 pieces^2).
PackedTrees pack_trees(const MemberWays& ways, std::uint32_t members, std::uint32_t pieces);

// The ways in the other direction.
MemberWays reversed(const MemberWays& ways);

// Returns the bandwidth of all links of the member that has the least of it, in or out.
Bandwidth least_ports(const MemberWays& ways, std::uint32_t members);

}  // namespace stepsim
