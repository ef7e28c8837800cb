// Small networks for tests of transports, and flows over them.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/network/flow_run.h"
#include "sim/network/transport/transport_network.h"
#include "sim/network/transport/transport_table.h"

namespace stepsim {

inline constexpr double kTestRate = 12.5e9;  // bytes/s: 100 Gb/s
inline constexpr Duration kTestLatency{1'000'000};

class TransportTestNetwork {
 public:
  NodeId node(const std::string& name) { return fabric_.add(NodeKind::kSwitch, name); }
  // Returns the link from a to b; the other way is the next one.
  LinkId connect(NodeId a, NodeId b, Duration latency = kTestLatency) {
    return fabric_.connect(a, b, Bandwidth(kTestRate), latency);
  }
  void flow(std::int64_t bytes, const std::vector<LinkId>& route, Time start = Time{}) {
    flows_.add(start, Bytes(bytes), route);
  }

  struct Result {
    FlowRun run;
    std::unique_ptr<TransportNetwork> network;

    double finish_us(std::uint32_t flow) const {
      return to_seconds(run.finish[flow].since_start) * 1e6;
    }
    double acknowledged_us(std::uint32_t flow) const {
      return static_cast<double>(network->message(TransferId(flow)).acknowledged) * 1e-6;
    }
    double last_us() const {
      double last = 0;
      for (std::uint32_t flow = 0; flow < run.finish.size(); ++flow) {
        last = std::max(last, finish_us(flow));
      }
      return last;
    }
    double last_acknowledged_us() const {
      double last = 0;
      for (std::uint32_t flow = 0; flow < run.finish.size(); ++flow) {
        last = std::max(last, acknowledged_us(flow));
      }
      return last;
    }
  };

  Result run(const TransportSpec& spec) const {
    Result result{.run = {}, .network = make_transport_network(fabric_, spec)};
    result.run = run_flows(flows_, fabric_, *result.network);
    return result;
  }
  const Fabric& fabric() const { return fabric_; }
  std::uint32_t flows() const { return static_cast<std::uint32_t>(flows_.flows.size()); }

 private:
  Fabric fabric_;
  FlowList flows_;
};

// `senders` hosts send to one over a switch. The link to the receiver is the last flow's second
// one.
inline TransportTestNetwork incast(std::uint32_t senders, std::int64_t bytes,
                                   LinkId* last_link = nullptr) {
  TransportTestNetwork network;
  const NodeId middle = network.node("s");
  const NodeId receiver = network.node("r");
  const LinkId out = network.connect(middle, receiver);
  for (std::uint32_t i = 0; i < senders; ++i) {
    const NodeId sender = network.node("h" + std::to_string(i));
    network.flow(bytes, {network.connect(sender, middle), out});
  }
  if (last_link != nullptr) *last_link = out;
  return network;
}

// One flow over a row of links.
inline TransportTestNetwork row(std::uint32_t links, std::int64_t bytes,
                                Duration latency = kTestLatency) {
  TransportTestNetwork network;
  std::vector<LinkId> route;
  NodeId before = network.node("n0");
  for (std::uint32_t i = 1; i <= links; ++i) {
    const NodeId next = network.node("n" + std::to_string(i));
    route.push_back(network.connect(before, next, latency));
    before = next;
  }
  network.flow(bytes, route);
  return network;
}

// A fat tree of k-port switches: k^3/4 hosts, links by name of their ends.
class FatTreeTest {
 public:
  explicit FatTreeTest(std::uint32_t k) : half_(k / 2) {
    for (std::uint32_t core = 0; core < half_ * half_; ++core) {
      cores_.push_back(network.node("c" + std::to_string(core)));
    }
    for (std::uint32_t pod = 0; pod < k; ++pod) {
      std::vector<NodeId> upper;
      for (std::uint32_t i = 0; i < half_; ++i) {
        upper.push_back(network.node("a" + std::to_string(pod * half_ + i)));
        for (std::uint32_t j = 0; j < half_; ++j) {
          core_links_.push_back(network.connect(upper.back(), cores_[i * half_ + j]));
        }
      }
      for (std::uint32_t i = 0; i < half_; ++i) {
        const NodeId tor = network.node("t" + std::to_string(pod * half_ + i));
        for (const NodeId aggregation : upper) {
          tor_links_.push_back(network.connect(tor, aggregation));
        }
        for (std::uint32_t j = 0; j < half_; ++j) {
          hosts_.push_back(network.node("h" + std::to_string(hosts_.size())));
          host_links_.push_back(network.connect(hosts_.back(), tor));
        }
      }
    }
  }

  std::uint32_t hosts() const { return static_cast<std::uint32_t>(hosts_.size()); }

  // Adds a flow over one of the shortest paths: between pods by the first core.
  void flow(std::uint32_t from, std::uint32_t to, std::int64_t bytes) {
    const auto back = [](LinkId link) { return LinkId(link.index() + 1); };
    const std::uint32_t from_tor = from / half_;
    const std::uint32_t to_tor = to / half_;
    std::vector<LinkId> route{host_links_[from]};
    if (from_tor != to_tor) {
      route.push_back(tor_links_[from_tor * half_]);
      if (from_tor / half_ != to_tor / half_) {
        route.push_back(core_links_[from_tor / half_ * half_ * half_]);
        route.push_back(back(core_links_[to_tor / half_ * half_ * half_]));
      }
      route.push_back(back(tor_links_[to_tor * half_]));
    }
    route.push_back(back(host_links_[to]));
    network.flow(bytes, route);
  }

  TransportTestNetwork network;

 private:
  const std::uint32_t half_;
  std::vector<NodeId> cores_;
  std::vector<NodeId> hosts_;
  std::vector<LinkId> core_links_;  // from aggregation switches, by switch and core
  std::vector<LinkId> tor_links_;   // from ToRs, by ToR and aggregation switch
  std::vector<LinkId> host_links_;  // from hosts
};

}  // namespace stepsim
