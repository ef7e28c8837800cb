// FlowNetwork moves transfers like fluids: at every instant their rates are the max-min fair
// shares of the links they cross. Packets, headers, windows and queues are not modelled.
//
//   start() --latency--> shares its links --all bytes through--> done
//
// A message over links a (100 GB/s), b (50 GB/s) and another one over b alone:
//
//   both on b:   25 and 25 GB/s     a has 75 GB/s to spare
//   one ends:    the other one gets 50 GB/s in the same instant
//
// The latency is paid before the first byte and takes no capacity. What ends and what starts at
// one instant is one change of rates. A link of infinite bandwidth never limits a transfer; a
// transfer over such links only is done at start + latency, like one of zero bytes.
//
// The algorithm, and why its result is fair, is told in fair_sharing.h: it is incremental, so a
// change costs the few links that it really alters, not the network. Ends are rounded to the
// nearest picosecond: up to half a picosecond for each end before it on a chain of dependent
// transfers. carried() counts every transfer up to its unrounded end.
//
// settle() asserts in debug builds that the rates of a small network are fair. Throws
// std::range_error if a transfer would take more than 106 days.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/network/fair_sharing.h"
#include "sim/network/instant_queue.h"
#include "sim/network/network.h"

namespace stepsim {

std::unique_ptr<Network> make_flow_network(const Fabric& fabric);

struct FlowNetworkOptions {
  // Evaluations of links in one settle() before all rates are computed afresh. Unset: a limit that
  // ordinary traffic never reaches. 0 computes all rates afresh at every change: slow, for tests.
  std::optional<std::uint64_t> evaluation_limit;
};

class FlowNetwork final : public Network {
 public:
  // The fabric must outlive the network.
  explicit FlowNetwork(const Fabric& fabric, const FlowNetworkOptions& options = {})
      : fabric_(fabric), sharing_(fabric, options.evaluation_limit) {}

  void start(Time now, TransferId id, const Transfer& transfer) override;
  void settle(Time now) override;
  std::optional<Time> next_event() const override;
  void advance(Time to, std::vector<TransferId>& done) override;
  double carried(LinkId link, Time at) const override;
  NetworkStatistics statistics() const override;

  // Gives tests access to rates and their check (FairSharing::rates, unfairness).
  const FairSharing& sharing() const { return sharing_; }

 private:
  const Fabric& fabric_;
  FairSharing sharing_;
  InstantQueue<FairSharing::Slot>
      waiting_;  // until the end of the latency, or of a transfer that needs no time
  std::vector<FairSharing::Slot> slots_;  // of one instant
  std::uint64_t transfers_ = 0;
};

}  // namespace stepsim
