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
  // REQUIRES: if the graph has host works, the cluster has hosts.
  HostRuns(const OpGraph& graph, const Streams& streams, Transport& transport);

  // Starts the host op of `stream`.
  void start(RankStreamId stream, Time now);

  void arrived(const HostTransfer& transfer, CommunicationReports& reports);

  Bytes copied(Axis axis) const { return copied_[static_cast<std::size_t>(axis)]; }  // both ways
  const std::vector<Bytes>& peaks() const { return peaks_; }                         // by host

 private:
  const HostWork& work_of(RankStreamId stream) const;
  const HostPath& path_of(RankStreamId stream) const;
  void hold(HostId host, Bytes change);

  const OpGraph& graph_;
  const Streams& streams_;
  Transport& transport_;
  std::vector<Bytes> held_;  // by HostId
  std::vector<Bytes> peaks_;
  std::array<Bytes, kMostAxes> copied_{};
  std::vector<LinkUse> uses_;  // scratch
};

}  // namespace stepsim
