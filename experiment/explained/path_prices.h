// PathPrices says what single ops take on a cluster by themselves: runs of kernels beside
// communication, collectives, messages, copies to hosts. The forms are those of simulate().

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "experiment/explained/path_bill.h"
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
  bool takes(const PathBill::Collective& collective) {
    const HeldShare share = known(collective).taken;
    return share.compute > 0 || share.memory > 0;
  }

 private:
  // ChipShare as real numbers: its millionths are too coarse for derivatives.
  struct HeldShare {
    double compute = 0;
    double memory = 0;
  };
  struct Known {
    PathTransfer transfer;
    HeldShare taken{};
  };

  const std::vector<KernelTime>& kernels(std::uint32_t work);
  const Known& known(const PathBill::Collective& collective);
  HeldShare taken_by(const LibraryCost& cost) const;

  const OpGraph& graph_;
  const Cluster& cluster_;
  CollectivePlans plans_;
  std::map<PathBill::Collective, Known> collectives_;
  std::map<std::uint32_t, std::vector<KernelTime>> kernels_;
  std::map<PathBill::Message, PathTransfer> messages_;
  std::map<std::tuple<std::uint32_t, double, double>, double> paces_;  // by work and shares
};

}  // namespace stepsim
