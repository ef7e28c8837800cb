#include "sim/run/collectives/collective_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "sim/collectives/choose_algorithm.h"
#include "sim/collectives/round_ends.h"
#include "sim/hardware/group_links.h"
#include "sim/hardware/group_shape.h"
#include "sim/run/collectives/collective_task.h"

namespace stepsim {
namespace {

// Links of a tree of switches count as links of the node. If the tree spans several nodes, they
// count as network links unless the link says that it is inside a node.
HopKind hop_kind(const Transport& transport, const CollectiveMessage& message, std::uint32_t from,
                 const std::vector<std::uint32_t>& chips) {
  if (!message.link) return transport.hop_kind(chips[from], chips[message.to]);
  return message.in_node ? transport.cluster().library.inside
                         : transport.hop_kind(chips.front(), chips.back());
}

struct Load {  // bytes over a link, or over each link of a group
  double data = 0;
  double wire = 0;  // including the library's overhead
};

// Edges sums the messages of all rounds, edge by edge.
class Edges {
 public:
  Edges(const Transport& transport, const std::vector<std::uint32_t>& chips, CollectivePlan& plan)
      : transport_(transport), cluster_(transport.cluster()), chips_(chips), plan_(plan) {}

  void sum_up() {
    const CollectiveAlgorithm& algorithm = *plan_.algorithm;
    latency_of_round_.assign(algorithm.lanes(), std::vector<Duration>(algorithm.rounds()));
    next_.resize(algorithm.endpoints());
    hop_.resize(algorithm.endpoints());
    Duration relayed{};
    for (std::uint32_t lane = 0; lane < algorithm.lanes(); ++lane) {
      for (std::uint32_t member = 0; member < algorithm.endpoints(); ++member) {
        add_messages(lane, member);
      }
      if (algorithm.relays()) {
        relayed = std::max(relayed, end_of_relay(algorithm.rounds(), next_, hop_));
      }
    }
    plan_.latency = plan_.cost.start +
                    (algorithm.relays() ? relayed : end_of_rounds(algorithm, latency_of_round_));
    make_transfer();
  }

 private:
  // A member sends to few peers, and many rounds in a row to the same one. So the bytes are
  // collected until the peer changes.
  void add_messages(std::uint32_t lane, std::uint32_t member) {
    const CollectiveAlgorithm& algorithm = *plan_.algorithm;
    std::optional<std::uint32_t> peer;
    std::int64_t bytes = 0;
    Duration latency{};
    std::size_t kind = 0;
    uses_.clear();
    const auto close_edge = [&] {
      for (const LinkUse& use : uses_) {
        const double of_link = static_cast<double>(bytes) * use.weight;
        load_[use.link].data += of_link;
        load_[use.link].wire += of_link * plan_.cost.wire[kind];
      }
      if (member < algorithm.members()) plan_.sent += Bytes(bytes);
      bytes = 0;
    };
    for (std::uint32_t round = 0; round < algorithm.rounds(); ++round) {
      const auto message = algorithm.message(lane, round, member);
      if (!message) continue;
      if (message->to != peer) {
        close_edge();
        peer = message->to;
        uses_.clear();
        kind = static_cast<std::size_t>(hop_kind(transport_, *message, member, chips_));
        latency = way(*message, member) + plan_.cost.hop[kind];
      }
      bytes += message->bytes.value();
      if (message->reduce && message->link) add_to_adder(*message);
      Duration& of_round = latency_of_round_[lane][round];
      of_round = std::max(of_round, latency);
    }
    close_edge();
    if (peer) next_[member] = *peer;
    hop_[member] = latency;
  }

  // Appends the links that a message uses and returns the latency of its route.
  Duration way(const CollectiveMessage& message, std::uint32_t from) {
    const Fabric& fabric = cluster_.fabric;
    if (message.link) {  // the message names a link, which may belong to a group
      uses_.push_back({*message.link, 1});
      const LinkUse spread = fabric.spread(*message.link);
      if (spread.link != *message.link) uses_.push_back(spread);
      return fabric.link(*message.link).latency;
    }
    route_.clear();
    const Duration latency = transport_.route(chips_[from], chips_[message.to], route_);
    for (const LinkId link : route_) uses_.push_back(fabric.spread(link));
    return latency;
  }

  // Bytes that a switch adds up go through its adder.
  void add_to_adder(const CollectiveMessage& message) {
    if (cluster_.adders.empty()) return;
    const NodeId to = cluster_.fabric.link(*message.link).to;
    if (to.index() >= cluster_.adders.size() || !cluster_.adders[to.index()]) return;
    Load& adder = load_[*cluster_.adders[to.index()]];
    adder.data += static_cast<double>(message.bytes.value());
    adder.wire += static_cast<double>(message.bytes.value());
  }

  void make_transfer() {
    double most = 0;
    for (const auto& [link, bytes] : load_) most = std::max(most, bytes.wire);
    plan_.bytes = bytes_rounded_up(most);
    for (const auto& [link, bytes] : load_) {
      if (bytes.data == 0) continue;
      plan_.uses.push_back({link, bytes.wire / most});
      if (!cluster_.library.ideal()) plan_.data.push_back(bytes.data);
    }
  }

  const Transport& transport_;
  const Cluster& cluster_;
  const std::vector<std::uint32_t>& chips_;
  CollectivePlan& plan_;
  std::map<LinkId, Load> load_;
  std::vector<LinkUse> uses_;  // of the current edge
  std::vector<LinkId> route_;
  std::vector<std::vector<Duration>> latency_of_round_;  // by lane
  std::vector<std::uint32_t> next_;                      // next round of a lane, by member
  std::vector<Duration> hop_;
};

}  // namespace

ChosenCollective choose_collective(const OpGraph& graph, const Cluster& cluster,
                                   CollectiveWorkId work, GroupId group) {
  const CollectiveWork& collective = graph.collective_works[work.index()];
  const Communicator& communicator = graph.communicators[collective.communicator.index()];
  ChosenCollective chosen;
  for (const RankId rank : communicator.groups[group.index()]) {
    chosen.chips.push_back(graph.ranks[rank.index()].chip);
  }
  const GroupShape shape = describe(cluster, chosen.chips);
  const CollectiveTask task = task_of(graph, collective, group);
  AlgorithmChoice choice = collective.algorithm;
  if (!cluster.library.ideal() || cluster.chip.communication.nvls) {
    const LibraryChoice with_library =
        choose_with_library(cluster.library, task, switches_can_add(collective.type), choice, shape,
                            links_of(cluster, chosen.chips, collective.type));
    choice = with_library.algorithm;
    chosen.cost = with_library.cost;
  }
  chosen.algorithm = choose_algorithm(task, choice, shape);
  return chosen;
}

CollectivePlan plan_collective(const OpGraph& graph, const Transport& transport,
                               CollectiveWorkId work, GroupId group, Granularity granularity,
                               Fidelity fidelity) {
  ChosenCollective chosen = choose_collective(graph, transport.cluster(), work, group);
  CollectivePlan plan{.algorithm = std::move(chosen.algorithm),
                      .cost = chosen.cost,
                      .taken = taken_of(transport.cluster().chip, chosen.cost)};
  plan.at_once = granularity == Granularity::kPipelined ||
                 (fidelity != Fidelity::kPacket && plan.algorithm->cuts_through());
  if (plan.at_once) {
    Edges(transport, chosen.chips, plan).sum_up();
    plan.algorithm.reset();
  }
  return plan;
}

}  // namespace stepsim
