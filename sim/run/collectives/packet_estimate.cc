#include "sim/run/collectives/packet_estimate.h"

#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/run/collectives/collective_plan.h"

namespace stepsim {
namespace {

constexpr double kHopsPerSecond = 20e6;        // bench/packet_bench.cc: 7 to 46 million
constexpr double kMessagesPerSecond = 0.5e6;   // stepped collectives, with their overhead
constexpr std::uint64_t kMostMessages = 4096;  // messages of a collective that are examined

class Estimator {
 public:
  Estimator(const OpGraph& graph, const Cluster& cluster, const PacketOptions& options)
      : graph_(graph),
        cluster_(cluster),
        packet_bytes_(options.packet_bytes),
        plans_(graph, cluster, Granularity::kStepped, Fidelity::kPacket) {}

  PacketEstimate of_one_step() {
    add_messages();
    add_collectives();
    return estimate_;
  }

 private:
  std::size_t links_between(std::uint32_t from, std::uint32_t to) {
    const auto [place, is_new] = links_.try_emplace(std::uint64_t{from} << 32 | to, 0);
    if (is_new) {
      route_.clear();
      const std::vector<NodeId>& chips = cluster_.places.chips;
      cluster_.router->route(chips[from], chips[to], 0, route_);
      place->second = static_cast<std::uint32_t>(route_.size());
    }
    return place->second;
  }

  void add(std::uint32_t from, std::uint32_t to, Bytes bytes, std::uint64_t times) {
    add_over(links_between(from, to), bytes, times);
  }

  void add_over(std::size_t links, Bytes bytes, std::uint64_t times) {
    estimate_.packet_hops += times * packet_hops(bytes, links, packet_bytes_);
    estimate_.messages += times;
  }

  void add_messages() {
    for (const RankData& rank : graph_.ranks) {
      const auto self = static_cast<std::size_t>(&rank - graph_.ranks.data());
      for (const Op& op : graph_.programs[rank.program.index()].ops) {
        if (op.kind != OpKind::kMessages) continue;
        for (std::uint32_t m = op.work; m < op.work + op.work_count; ++m) {
          const Message& message = graph_.messages[m];
          if (!message.is_send) continue;
          const Communicator& communicator = graph_.communicators[message.communicator.index()];
          const RankId peer = communicator.groups[communicator.seat_of[self].group][message.peer];
          add(rank.chip, graph_.ranks[peer.index()].chip, message.bytes, 1);
        }
      }
    }
  }

  // Returns how often a program issues each collective work.
  std::vector<std::vector<std::uint64_t>> times_issued() const {
    std::vector<std::vector<std::uint64_t>> times(
        graph_.programs.size(), std::vector<std::uint64_t>(graph_.collective_works.size(), 0));
    for (std::size_t p = 0; p < graph_.programs.size(); ++p) {
      for (const Op& op : graph_.programs[p].ops) {
        if (op.kind == OpKind::kCollective) ++times[p][op.work];
      }
    }
    return times;
  }

  // A group counts as often as its first member's program issues the work.
  void add_collectives() {
    const std::vector<std::vector<std::uint64_t>> times = times_issued();
    for (std::uint32_t work = 0; work < graph_.collective_works.size(); ++work) {
      const CollectiveWork& collective = graph_.collective_works[work];
      const auto& groups = graph_.communicators[collective.communicator.index()].groups;
      for (std::uint32_t group = 0; group < groups.size(); ++group) {
        const RankData& first = graph_.ranks[groups[group].front().index()];
        const std::uint64_t issued = times[first.program.index()][work];
        if (issued > 0 && groups[group].size() > 1) {
          add_collective(CollectiveWorkId(work), GroupId(group), issued);
        }
      }
    }
  }

  void add_collective(CollectiveWorkId work, GroupId group, std::uint64_t issued) {
    const ChosenCollective chosen = plans_.chosen_for(work, group);
    const std::unique_ptr<CollectiveAlgorithm>& algorithm = chosen.algorithm;
    const std::uint64_t lanes = algorithm->lanes();
    const std::uint64_t rounds = algorithm->rounds();
    const std::uint64_t endpoints = algorithm->endpoints();
    const std::uint64_t all = lanes * rounds * endpoints;
    // An odd stride covers all lanes, rounds and members, whose numbers are mostly even.
    const std::uint64_t stride = all <= kMostMessages ? 1 : (all / kMostMessages) | 1;
    for (std::uint64_t i = 0; i < all; i += stride) {
      const auto member = static_cast<std::uint32_t>(i % endpoints);
      const auto round = static_cast<std::uint32_t>(i / endpoints % rounds);
      const auto lane = static_cast<std::uint32_t>(i / endpoints / rounds);
      const auto message = algorithm->message(lane, round, member);
      if (!message) continue;
      if (message->link) {  // from or to a switch
        add_over(1, message->bytes, issued * stride);
      } else {
        add_over(links_between(chosen.chips[member], chosen.chips[message->to]), message->bytes,
                 issued * stride);
      }
    }
  }

  const OpGraph& graph_;
  const Cluster& cluster_;
  const Bytes packet_bytes_;
  CollectivePlans plans_;
  PacketEstimate estimate_;
  std::unordered_map<std::uint64_t, std::uint32_t> links_;  // by from and to; never iterated
  std::vector<LinkId> route_;                               // scratch
};

}  // namespace

double PacketEstimate::seconds() const {
  return static_cast<double>(packet_hops) / kHopsPerSecond +
         static_cast<double>(messages) / kMessagesPerSecond;
}

PacketEstimate estimate_packets(const OpGraph& graph, const Cluster& cluster,
                                const PacketOptions& options, std::uint32_t steps) {
  PacketEstimate estimate = Estimator(graph, cluster, options).of_one_step();
  estimate.packet_hops *= steps;
  estimate.messages *= steps;
  return estimate;
}

}  // namespace stepsim
