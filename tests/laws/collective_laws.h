// The laws of collectives (docs/collectives.md, "Laws"), checked on clusters of the catalog: what
// must hold for `auto` and for every algorithm that a library has, whatever their costs are.
//
//   size        more bytes never take less time (1 % is rounding)
//   ranks       more nodes, or more members of a node, never take less (1 % is rounding), but for
//               exchanges in a node, whose measured times do
//   neighbours  sizes, and numbers of nodes, within 10 % of each other are within 25 % in time,
//               unless the library leaves a protocol between them (`most_bytes`)
//   auto        no algorithm that the library has is more than 10 % faster than `auto`
//   granularity stepped is within 30 % of pipelined, where a ring, chain, tree or NVLS runs
//   link        twice the bandwidth of a kind of link never makes a collective slower
//
// The algorithms that a library has: ways_of() (sim/collectives/library_choice.h). Groups fill
// nodes alike.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiment/experiment.h"

namespace stepsim {

struct BrokenLaw {
  std::string law;
  std::string where;    // "dgx-h100-16 all-reduce 65536 B auto"
  double expected = 0;  // seconds: the limit
  double found = 0;
};

struct LawScope {
  std::vector<std::int64_t> sizes;     // bytes, ascending
  std::vector<std::uint32_t> members;  // chips 0 to n - 1, ascending; more than there are: left out
  std::uint32_t most_stepped = 16;     // members of stepped runs
  std::uint32_t most_exchanging = 256;  // members of an all-to-all
};

struct LawReport {
  std::uint64_t checked = 0;
  std::vector<BrokenLaw> broken;
};

// `name`: of the cluster, for the report.
LawReport check_collective_laws(const std::string& name, const ClusterSpec& spec,
                                const LawScope& scope);

}  // namespace stepsim
