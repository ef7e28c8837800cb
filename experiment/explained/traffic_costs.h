// TrafficCosts says what a collective takes by itself, from V / W on: its causes are turned on one
// after the other, each in a model that differs from the one before by that cause alone. So each
// cause has the sign that its row in the table names, and they add up exactly.
//
//   V / W              all bytes of the array, at the full rate of each member's own links
//   own part           (n-1)/n of it: a member has its own part already                         -
//   fewer bytes        of what is sent over the members' own links, if that is less: a node has
//                      the parts of its members, or switches add                                -
//   unequal axes       torus: rings over the axes that there are, all of them wrapped           +
//   lines              torus: as the axes are wired                                             +
//   the algorithm      what it sends over the links of a member, on the busiest of them         +
//   trips              latencies of the links, through all rounds                               +
//   library            bytes on the wire, start, and hops that it makes slower                  +
//   shared links       what all members together send over each link: cards and uplinks that
//                      several of them use                                                      +
//
// The last is what simulate() takes for the collective alone. The others are up to whoever has
// simulated it beside other work: `early`, `batch` and `others`.
//
// A link counts as a member's own as far as the bytes that this member sends or receives over it
// go. Operations that aren't rings (is_ring_op) begin with the closed form of their algorithm.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "books/collective_forms/group_levels.h"
#include "sim/base/ids.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/collectives/collective_plan.h"

namespace stepsim {

// In the order in which they are turned on.
enum class TrafficCause : std::uint8_t {
  kOwnPart,
  kFewerBytes,
  kUnequalAxes,
  kLines,
  kAlgorithm,
  kTrips,
  kLibrary,
  kSharedLinks,
  kBatch,   // messages that move at the same time are counted once
  kEarly,   // a member of a stepped collective ends before the others do
  kOthers,  // other traffic on the same links, or rounds that wait for each other
};
constexpr std::size_t kTrafficCauses = 11;

struct TrafficCauseRow {
  TrafficCause cause;
  std::string_view text;
  bool adds = false;  // false: it can only take away
};
// In the order of TrafficCause.
const std::array<TrafficCauseRow, kTrafficCauses>& traffic_causes();

struct TrafficCosts {
  double ideal = 0;                               // V / W, seconds
  std::array<double, kTrafficCauses> by_cause{};  // seconds
  AlgorithmChoice algorithm = AlgorithmChoice::kRing;

  double seconds() const;  // ideal and all causes
  double& of(TrafficCause cause) { return by_cause[static_cast<std::size_t>(cause)]; }
  // Adds what is missing from seconds() to `simulated`, to `less` if it is negative, else to
  // `more`.
  void add_rest(double simulated, TrafficCause less, TrafficCause more);
  void add(const TrafficCosts& other, double share);
};

// Returns the rate in bytes/s at which an array passes: over both directions of all axes of a torus
// at once, or over the slowest level, which gets the bytes that the inner levels leave.
double bandwidth_of(const FormulaGroup& group);

class TrafficModel {
 public:
  // REQUIRES: both outlive it.
  TrafficModel(const OpGraph& graph, const Cluster& cluster)
      : graph_(graph),
        cluster_(cluster),
        plans_(graph, cluster, Granularity::kPipelined, Fidelity::kFlow) {}

  // A collective alone, as one pipelined transfer. Costs O(its messages) the first time.
  // REQUIRES: the group has more than one member.
  const TrafficCosts& collective(CollectiveWorkId work, GroupId group);

  // A message alone.
  TrafficCosts message(Bytes bytes, std::uint32_t from_chip, std::uint32_t to_chip);

 private:
  struct LinkTimes {
    double own = 0;  // seconds, of one member on the busiest link
    double all = 0;  // of all members
  };
  struct Use {  // of a link by the messages of an edge
    std::uint32_t link = 0;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    double seconds = 0;
  };

  TrafficCosts costs_of(CollectiveWorkId work, GroupId group);
  LinkTimes times_of(std::uint32_t pattern, const EdgeWays& ways, const LibraryCost& cost) const;
  const FormulaLevel& route(std::uint32_t from_chip, std::uint32_t to_chip);

  const OpGraph& graph_;
  const Cluster& cluster_;
  CollectivePlans plans_;
  std::map<std::pair<CollectiveWorkId, GroupId>, TrafficCosts> collectives_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, FormulaLevel> routes_;  // by chips
};

}  // namespace stepsim
