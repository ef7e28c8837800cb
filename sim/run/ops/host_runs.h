// HostRuns runs the host ops of ranks: copies to and from the host, and work on data there. Each is
// one transfer over the links of sim/hardware/hosts.h, so ranks of a host share them. HostRuns also
// counts the bytes held on each host.

#pragma once

#include <array>
#include <vector>

#include "sim/program/op_graph.h"
#include "sim/run/ops/communication_reports.h"
#include "sim/run/ops/streams.h"
#include "sim/run/ops/transfer_owner.h"
#include "sim/run/ops/transport.h"

namespace stepsim {

class HostRuns {
 public:
  // REQUIRES: if the graph has host works that use a host, the cluster has hosts.
  HostRuns(const Job& job, const Streams& streams, Transport& transport);

  // Starts the host op of `stream`.
  void start(RankStreamId stream, Time now);

  void arrived(const HostTransfer& transfer, Time now, CommunicationReports& reports);

  Bytes copied(Axis axis) const { return copied_[static_cast<std::size_t>(axis)]; }  // both ways
  std::vector<Bytes> peaks() const;                                                  // by host

 private:
  const HostWork& work_of(RankStreamId stream) const;
  const HostPath& path_of(RankStreamId stream) const;
  void hold(RankId rank, Bytes change, Time now);

  // Changes of one instant count as one: a peak is looked at only when time moves on.
  struct Held {
    Bytes bytes;
    Time changed_at;
    Bytes peak;
  };

  const Job& job_;
  const OpGraph& graph_;
  const Streams& streams_;
  Transport& transport_;
  std::vector<Held> held_;  // by host; in a folded job by class of hosts
  std::array<Bytes, kMostAxes> copied_{};
  std::vector<LinkUse> uses_;  // scratch
};

}  // namespace stepsim
