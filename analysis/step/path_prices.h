// PathPrices says what single ops take on a cluster by themselves: runs of kernels beside
// communication, collectives, messages, copies to hosts. The forms are those of simulate().

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/step/path_bill.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/collectives/collective_plan.h"
#include "sim/run/ops/chip_share.h"

namespace stepsim {

// PathTransfer is a transfer by itself: a latency, and then its bytes, in picoseconds.
struct PathTransfer {
  double latency = 0;
  double flowing = 0;
};

class PathPrices {
 public:
  // REQUIRES: both outlive it.
  PathPrices(const OpGraph& graph, const Cluster& cluster);

  // A run of kernels while these collectives hold shares of the chip.
  double compute(const PathBill::Compute& compute);
  const PathTransfer& collective(const PathBill::Collective& collective);
  PathTransfer message(const PathBill::Message& message);
  PathTransfer host(const PathBill::Host& host) const;
  // From the first launch of a run to its start (sim/run/ops/launches.h).
  double lead(std::optional<std::uint32_t> work, Duration launch);

  // Whether a collective holds a share of the chip.
  bool takes(const PathBill::Collective& collective) { return !(taken(collective) == ChipShare{}); }

 private:
  struct Known {
    PathTransfer transfer;
    ChipShare taken{};
  };

  const std::vector<KernelTime>& kernels(std::uint32_t work);
  const Known& known(const PathBill::Collective& collective);
  ChipShare taken(const PathBill::Collective& collective) { return known(collective).taken; }

  const OpGraph& graph_;
  const Cluster& cluster_;
  CollectivePlans plans_;
  std::map<PathBill::Collective, Known> collectives_;
  std::map<std::uint32_t, std::vector<KernelTime>> kernels_;
  std::map<PathBill::Message, PathTransfer> messages_;
  std::map<std::pair<std::uint32_t, std::pair<std::int32_t, std::int32_t>>, double> paces_;
};

}  // namespace stepsim
