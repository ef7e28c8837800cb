// ShortestPaths finds the path between two nodes of a fabric if no rule of the topology gives it:
// for graphs that a person listed (explicit_graph.h) and for routes round links that are down
// (faults.h).
//
//   ShortestPaths paths(fabric, PathMetric::kHops);
//   if (!paths.append(from, to, out)) ...  // there is no way
//
// Among several shortest paths it takes, at every node, the link with the lowest id, or the one
// that a PathChoice names. So the answer depends only on the fabric, and the flow. A path may lead
// through chips; with a choice, those that pass fewer are shorter.
//
// The first path to a destination costs O(links * log(nodes)) and leaves a table of 4 bytes per
// node (28 with a PathChoice). Every other path to the same destination costs its own length. All
// pairs of 9,000 chips therefore need 320 MB; usually few are asked for. Several threads may use
// it.

#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/ids.h"
#include "sim/network/fabric.h"
#include "topology/graph/path_choice.h"

namespace stepsim {

enum class PathMetric : std::uint8_t {
  kHops,        // fewest links
  kLatency,     // least sum of latencies, then the fewest links
  kSpareHosts,  // fewest links to or from a host, then the fewest links
};

class ShortestPaths {
 public:
  // Copies what it needs of the fabric and keeps no reference to it.
  ShortestPaths(const Fabric& fabric, PathMetric metric, std::optional<PathChoice> choice = {});
  ~ShortestPaths();
  ShortestPaths(const ShortestPaths&) = delete;
  ShortestPaths& operator=(const ShortestPaths&) = delete;

  // Appends the links of the path; nothing for a node and itself. Returns false and appends nothing
  // if there is no path.
  bool append(NodeId from, NodeId to, std::vector<LinkId>& out, std::uint64_t flow_key = 0) const;

 private:
  class Table;

  // Sum of prices; links, and with a choice the chips that are passed, which only break ties.
  using Cost = std::pair<std::int64_t, std::uint64_t>;

  const Table& table_to(NodeId to) const;
  Cost through(LinkId link, const Cost& rest) const;
  std::vector<LinkId> ways(const Table& table, NodeId at) const;

  std::size_t nodes_;
  std::optional<PathChoice> choice_;
  std::vector<bool> is_chip_;                 // by node; only with a choice
  std::vector<std::vector<LinkId>> leaving_;  // links out of each node; only with a choice
  std::vector<Link> links_;
  std::vector<std::int64_t> prices_;           // by link; the metric adds them up before hops
  std::vector<std::vector<LinkId>> arriving_;  // links into each node
  mutable std::mutex mutex_;                   // guards tables_
  mutable std::vector<std::unique_ptr<const Table>> tables_;  // by destination, once asked for
};

}  // namespace stepsim
