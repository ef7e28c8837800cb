// HostRuns carries out what ranks do with their hosts: copies there and back, and work on what lies
// there. Each is one transfer over the links of sim/hardware/hosts.h, so that ranks of a host share
// them. It keeps the books of what lies on each host.

#pragma once

#include <vector>

#include "sim/program/op_graph.h"
#include "sim/run/streams.h"
#include "sim/run/transfer_owner.h"
#include "sim/run/transport.h"

namespace stepsim {

class HostRuns {
 public:
  // REQUIRES: where the graph has host works, the cluster has hosts.
  HostRuns(const OpGraph& graph, const Streams& streams, Transport& transport);

  // Starts the host op of `stream`.
  void start(std::uint32_t stream, Time now);

  // REQUIRES: the transfer's owner is a host op.
  void arrived(const TransferOwner& owner, Meetings& meetings);

  Bytes copied() const { return copied_; }                    // there and back, by all ranks
  const std::vector<Bytes>& peaks() const { return peaks_; }  // by host

 private:
  const HostWork& work_of(std::uint32_t stream) const;
  const HostPath& path_of(std::uint32_t stream) const;
  void hold(HostId host, Bytes change);

  const OpGraph& graph_;
  const Streams& streams_;
  Transport& transport_;
  std::vector<Bytes> held_;  // by HostId
  std::vector<Bytes> peaks_;
  Bytes copied_{};
  std::vector<LinkUse> uses_;  // scratch
};

}  // namespace stepsim
