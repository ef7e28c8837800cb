// PathBill is what the critical path of a step is made of, and so its derivative: by how much the
// step changes with each thing of the hardware, to first order.
//
//   const PathBill bill = path_bill(graph, cluster, result);
//   const double change = change_of(bill, graph, {less, less_host}, {more, more_host});
//
// The end of each op follows from the ends of others:
//
//   start of an op     the end of the op that released it, or what its host launched since
//   run of kernels     its start, and each start and end of a collective beside it, which changes
//                      its pace: it ends when the fractions of the run that were done at each pace
//                      add up to 1
//   transfer           when its last side was posted, then latency, then bytes over the bottleneck
//
// path_bill() walks this graph back from the end of the step with the derivative of the end with
// respect to each instant, and books what remains: seconds of each run of kernels at each pace,
// latencies and seconds of each transfer, launches. A step that is measured from the end of another
// one takes that one's away. change_of() prices the bill on other hardware: the closed forms of its
// items, one by one. Nothing is simulated again.
//
// The derivative is exact where each transfer of the path moves at a rate of its own, or shares its
// links with the same others from its first byte to its last. Where others come and go on the way,
// its part of the links is held as it was on average, and `shared` says how much of the path that
// is. Where messages of a collective or packets are simulated one by one (Granularity::kStepped),
// the time of the collective is divided as that of one transfer would be, which is an estimate.
// Where two causes end at one instant, the derivative is that of one of the two paths.
//
// The order of the ops, the algorithms of collectives and the schedule are held as they are.

#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

// Seconds of the path that one item takes. `times` is how often its constant part comes,
// `flowing` the picoseconds that scale with it as a whole.
struct PathAmount {
  double times = 0;
  double flowing = 0;
};

struct PathBill {
  struct Collective {
    CollectiveWorkId work;
    GroupId group;
    friend auto operator<=>(const Collective&, const Collective&) = default;
  };
  // A run of kernels while these collectives hold shares of the chip.
  struct Compute {
    std::uint32_t work = 0;
    std::vector<Collective> beside;
    friend auto operator<=>(const Compute&, const Compute&) = default;
  };
  struct Message {
    std::uint32_t from_chip = 0;
    std::uint32_t to_chip = 0;
    std::int64_t bytes = 0;
    friend auto operator<=>(const Message&, const Message&) = default;
  };
  struct Host {
    std::uint32_t chip = 0;
    std::uint32_t work = 0;
    friend auto operator<=>(const Host&, const Host&) = default;
  };

  std::map<Compute, double> computes;  // picoseconds
  std::map<Collective, PathAmount> collectives;
  std::map<Message, PathAmount> messages;
  std::map<Host, PathAmount> hosts;
  double launches = 0;                                   // of the path's hosts
  std::map<std::optional<std::uint32_t>, double> leads;  // by run of kernels; unset: of another op
  std::int64_t steps = 1;                                // that the amounts are of

  double path = 0;    // picoseconds of all items
  double shared = 0;  // of these: transfers that shared their links
};

// REQUIRES: `result` is of simulate(graph, cluster) with recorded_ranks of every rank and
// share_timelines. Costs O(ops of simulated ranks).
PathBill path_bill(const OpGraph& graph, const Cluster& cluster, const SimulationResult& result);

// Hardware on which a bill is priced: the graph's own, with other rates and times.
struct PricedHardware {
  const Cluster& cluster;
  std::optional<HostCost> host{};
};

// Returns the difference of the step, in picoseconds, between `more` and `less`, which differ
// little from the bill's own hardware. Divided by the difference of ln x it is d(step)/d(ln x).
double change_of(const PathBill& bill, const OpGraph& graph, const PricedHardware& less,
                 const PricedHardware& more);

}  // namespace stepsim
