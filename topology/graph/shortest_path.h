// ShortestPaths finds the way between two nodes of a fabric when no rule of the topology says it:
// for graphs that a person listed (explicit_graph.h) and round links that are down (faults.h).
//
//   ShortestPaths paths(fabric, PathMetric::kHops);
//   if (!paths.append(from, to, out)) ...  // there is no way
//
// Where several paths are shortest it takes, at every node, the link with the lowest id. So the
// answer depends on nothing but the fabric. A path may lead through chips.
//
// The first path to a destination costs O(links * log(nodes)) and leaves a table of 4 bytes a node
// behind; every other path to the same destination costs its own length. All pairs of 9,000 chips
// so need 320 MB; those that are asked for are usually few. May be used by several threads.

#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/base/ids.h"
#include "sim/network/fabric.h"

namespace stepsim {

enum class PathMetric : std::uint8_t {
  kHops,        // fewest links
  kLatency,     // least sum of latencies, and of those the fewest links
  kSpareHosts,  // fewest links to or from a host, and of those the fewest links
};

class ShortestPaths {
 public:
  // Keeps what it needs of the fabric, not the fabric.
  ShortestPaths(const Fabric& fabric, PathMetric metric);
  ~ShortestPaths();
  ShortestPaths(const ShortestPaths&) = delete;
  ShortestPaths& operator=(const ShortestPaths&) = delete;

  // Appends the links of the path, nothing for a node and itself. False, and nothing appended, if
  // there is no path.
  bool append(NodeId from, NodeId to, std::vector<LinkId>& out) const;

 private:
  class Table;

  const Table& table_to(NodeId to) const;

  std::size_t nodes_;
  std::vector<Link> links_;
  std::vector<std::int64_t> prices_;           // by link; what the metric adds up before hops
  std::vector<std::vector<LinkId>> arriving_;  // links into each node
  mutable std::mutex mutex_;                   // of tables_
  mutable std::vector<std::unique_ptr<const Table>> tables_;  // by destination, those asked for
};

}  // namespace stepsim
