// NetworkKvTransport carries KV caches over the network of a cluster, on which they share links
// fairly with each other (sim/network/flow_network.h).
//
//   NetworkKvTransport transport(cluster, {{.first = 0, .ranks = 4, .token = 20_KB},    // prefill
//                                          {.first = 8, .ranks = 8, .token = 10_KB}});  // decode
//
// Each chip of the decode group gets its part of the cache from a chip of the prefill group: as
// many messages as the larger of the two groups has chips, all at once, over the routes between
// the chips. Context ranks of the prefill group hold a share of the tokens each, and each share
// goes to the whole decode group that way. A request belongs to one data-parallel group of either
// side, by its number.
//
// Blocks on their way between a replica and its host's memory (KvWay) take the links of each chip
// to its host: of one request those of its data-parallel group, on the way to the host all chips'.
// The cluster needs hosts for them.
//
// Not modelled: what passes send at the same time, and the time of the host or a NIC to begin.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "serving/kv_transport.h"
#include "sim/base/units.h"
#include "sim/hardware/cluster.h"
#include "sim/network/flow_network.h"

namespace stepsim {

// Where a replica is. Chips of a data-parallel group are neighbours.
struct ReplicaPlace {
  std::uint32_t first = 0;     // chip
  std::uint32_t ranks = 1;     // of a data-parallel group
  std::uint32_t groups = 1;    // data-parallel ones
  Bytes token{};               // of the cache on each chip of a group; with context ranks the mean
  std::uint32_t contexts = 1;  // context ranks of a group: each has a share of its tokens
  std::uint32_t context_stride = 1;  // chips from one of them to the next
};

class NetworkKvTransport final : public KvTransport {
 public:
  // `replicas`: by number, as KvTransfer has it. The cluster must outlive this. REQUIRES: its chips
  // hold all replicas, which don't overlap.
  NetworkKvTransport(const Cluster& cluster, std::vector<ReplicaPlace> replicas)
      : cluster_(cluster), replicas_(std::move(replicas)), network_(cluster.fabric) {}

  void start(Time now, const KvTransfer& transfer) override;
  std::optional<Time> next_event() const override { return network_.next_event(); }
  void advance(Time now, std::vector<KvTransfer>& arrived) override;

 private:
  void send(Time now, Bytes bytes, Duration latency, const std::vector<LinkId>& route);
  void start_between(Time now, const KvTransfer& transfer);
  void start_copy(Time now, const KvTransfer& transfer);

  struct UnderWay {
    KvTransfer transfer;
    std::uint32_t messages = 0;  // that have not arrived
  };

  const Cluster& cluster_;
  std::vector<ReplicaPlace> replicas_;
  FlowNetwork network_;
  std::map<std::uint32_t, UnderWay> under_way_{};      // by number
  std::map<TransferId, std::uint32_t> transfer_of_{};  // by message
  std::uint32_t started_ = 0;
  std::uint32_t messages_ = 0;
  std::vector<LinkId> route_{};  // kept for their memory
  std::vector<LinkUse> uses_{};
  std::vector<TransferId> done_{};
};

}  // namespace stepsim
