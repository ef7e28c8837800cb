#include "sim/run/collectives/collective_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/collectives/choose_algorithm.h"
#include "sim/hardware/chip_route.h"
#include "sim/hardware/group_links.h"
#include "sim/hardware/group_shape.h"
#include "sim/run/collectives/collective_task.h"

namespace stepsim {
namespace {

bool asks_library(const Cluster& cluster) {
  return !cluster.library.ideal() || cluster.chip.communication.nvls;
}

// LinkLoads adds up the bytes over each link, in whole bytes by kind of route, so that the sums are
// the same in any order.
class LinkLoads {
 public:
  struct Load {
    LinkId link;
    double share = 1;  // of the bytes of its messages
    std::array<Bytes, kHopKinds> bytes{};
    Bytes added{};  // through an adder

    // Data, or with `wire` the bytes that they take with the library's overhead.
    double of(const std::array<double, kHopKinds>& wire) const {
      double sum = 0;
      for (std::size_t kind = 0; kind < kHopKinds; ++kind) {
        sum += static_cast<double>(bytes[kind].value()) * wire[kind];
      }
      return share * sum + static_cast<double>(added.value());
    }
  };

  LinkLoads(const EdgeWays& ways, const std::vector<Bytes>& bytes) {
    std::vector<EdgeWays::Part> parts = ways.parts;
    std::ranges::sort(parts, {}, [](const EdgeWays::Part& part) { return part.use.link; });
    for (const EdgeWays::Part& part : parts) {
      if (loads_.empty() || loads_.back().link != part.use.link) {
        loads_.push_back({.link = part.use.link, .share = part.use.weight});
      }
      Load& load = loads_.back();
      (part.of_adder ? load.added : load.bytes[static_cast<std::size_t>(ways.kinds[part.edge])]) +=
          bytes[part.edge];
    }
  }

  auto begin() const { return loads_.begin(); }
  auto end() const { return loads_.end(); }

 private:
  std::vector<Load> loads_;
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
  if (asks_library(cluster)) {
    const LibraryChoice with_library =
        choose_with_library(cluster.library, task, switches_can_add(collective.type), choice, shape,
                            links_of(cluster, chosen.chips, collective.type));
    choice = with_library.algorithm;
    chosen.cost = with_library.cost;
    chosen.protocol = with_library.protocol;
  } else if (choice == AlgorithmChoice::kAuto) {
    choice = resolve(task, choice, shape).choice;
  }
  chosen.choice = choice;
  chosen.algorithm = choose_algorithm(task, choice, shape);
  return chosen;
}

CollectivePlans::CollectivePlans(const OpGraph& graph, const Cluster& cluster,
                                 Granularity granularity, Fidelity fidelity)
    : graph_(graph),
      cluster_(cluster),
      granularity_(granularity),
      fidelity_(fidelity),
      kinds_(cluster_),
      places_(graph.communicators.size()) {}

CollectivePlan CollectivePlans::plan_of(CollectiveWorkId work, GroupId group) {
  CollectivePlan plan;
  plan.at_once = granularity_ == Granularity::kPipelined;
  if (!plan.at_once) {
    ChosenCollective chosen = choose_collective(graph_, cluster_, work, group);
    plan.cost = chosen.cost;
    plan.taken = taken_of(cluster_.chip, chosen.cost);
    plan.at_once = fidelity_ != Fidelity::kPacket && chosen.algorithm->cuts_through();
    if (!plan.at_once) plan.algorithm = std::move(chosen.algorithm);
  }
  if (plan.at_once) make_transfer(work, group, plan);
  return plan;
}

void CollectivePlans::make_transfer(CollectiveWorkId work, GroupId group, CollectivePlan& plan) {
  const std::uint32_t number = pattern_of(work, group);
  const MessagePattern& common = pattern(number);
  find_ways(common.edges, work_of(work).communicator, group, ways_);
  plan.cost = common.cost;
  plan.taken = common.taken;
  plan.sent = common.sent;
  plan.latency = latency_of(number, ways_.latencies);
  const LinkLoads loads(ways_, common.bytes);
  std::array<double, kHopKinds> data{};
  data.fill(1);
  double most = 0;
  for (const LinkLoads::Load& load : loads) most = std::max(most, load.of(common.cost.wire));
  plan.bytes = bytes_rounded_up(most);
  for (const LinkLoads::Load& load : loads) {
    const double bytes = load.of(data);
    if (bytes == 0) continue;
    plan.uses.push_back({load.link, load.of(common.cost.wire) / most});
    if (!cluster_.library.ideal()) {
      Bytes sum = load.added;
      for (const Bytes part : load.bytes) sum += part;
      plan.data.push_back(load.share == 1 ? ExactBytes(sum) : ExactBytes::of(sum, load.share));
    }
  }
}

const GroupKinds::Place& CollectivePlans::place_of(CommunicatorId communicator, GroupId group) {
  std::vector<std::optional<GroupKinds::Place>>& places = places_[communicator.index()];
  if (places.empty()) places.resize(graph_.communicators[communicator.index()].groups.size());
  std::optional<GroupKinds::Place>& place = places[group.index()];
  if (!place) {
    chips_of(communicator, group);
    place = kinds_.place_of(chips_);
  }
  return *place;
}

void CollectivePlans::chips_of(CommunicatorId communicator, GroupId group) {
  chips_.clear();
  for (const RankId rank : graph_.communicators[communicator.index()].groups[group.index()]) {
    chips_.push_back(graph_.ranks[rank.index()].chip);
  }
}

std::uint32_t CollectivePlans::pattern_of(CollectiveWorkId work, GroupId group) {
  const CollectiveWork& asked = work_of(work);
  const std::uint32_t kind = place_of(asked.communicator, group).kind;
  const std::uint32_t own_matrix = asked.matrix_of_each_group ? group.index() : 0;
  const std::uint64_t hash =
      (static_cast<std::uint64_t>(asked.bytes.value()) * 0x9e3779b97f4a7c15U) ^
      std::uint64_t{kind} << 32 ^ static_cast<std::uint64_t>(asked.op) << 8 ^ own_matrix;
  const auto [first, last] = by_work_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    const Known& like = patterns_[known->second];
    CollectiveWork same = like.work;
    same.communicator = asked.communicator;
    if (like.kind == kind && like.own_matrix == own_matrix && same == asked) return known->second;
  }
  const std::uint32_t number = add_pattern(work, group, kind);
  patterns_[number].own_matrix = own_matrix;
  by_work_.emplace(hash, number);
  return number;
}

std::unique_ptr<CollectiveAlgorithm> CollectivePlans::algorithm_of(const Known& known,
                                                                   LibraryCost& cost) const {
  const GroupKind& kind = kinds_.kind(known.kind);
  const CollectiveTask task = task_of(graph_, known.work, GroupId(known.own_matrix));
  AlgorithmChoice choice = known.work.algorithm;
  if (asks_library(cluster_)) {
    GroupLinks links = kind.links;
    links.adder = adder_of(cluster_, known.work.type);
    const LibraryChoice with_library = choose_with_library(
        cluster_.library, task, switches_can_add(known.work.type), choice, kind.shape, links);
    choice = with_library.algorithm;
    cost = with_library.cost;
  }
  return choose_algorithm(task, choice, kind.shape);
}

std::uint32_t CollectivePlans::add_pattern(CollectiveWorkId work, GroupId group,
                                           std::uint32_t kind) {
  const CollectiveWork& asked = work_of(work);
  Known known{.work = asked,
              .kind = kind,
              .own_matrix = asked.matrix_of_each_group ? group.index() : 0,
              .pattern = {},
              .trips = {}};
  const auto algorithm = algorithm_of(known, known.pattern.cost);
  known.pattern.taken = taken_of(cluster_.chip, known.pattern.cost);
  const GroupKinds::Place& place = place_of(asked.communicator, group);
  chips_of(asked.communicator, group);
  std::vector<Duration> latencies;
  EdgeSums sums = sum_edges(*algorithm, [&](const CollectiveEdge& edge) {
    latencies.push_back(route_of_edge(edge, place));
    const HopKind hop = kinds_.hop_kind(kinds_.kind(kind), edge);
    if (known.pattern.cost.has_trips) return Duration();
    return latencies.back() + known.pattern.cost.hop[static_cast<std::size_t>(hop)];
  });
  known.trips.push_back(
      {.latencies = std::move(latencies), .all = known.pattern.cost.start + sums.latency});
  known.pattern.bytes = std::move(sums.bytes);
  known.pattern.sent = sums.sent;
  known.pattern.edges = number_of(std::move(sums.edges));
  patterns_.push_back(std::move(known));
  return static_cast<std::uint32_t>(patterns_.size() - 1);
}

std::uint32_t CollectivePlans::number_of(std::vector<CollectiveEdge> edges) {
  const auto found = std::ranges::find(edges_, edges);
  if (found == edges_.end()) {
    edges_.push_back(std::move(edges));
    return static_cast<std::uint32_t>(edges_.size() - 1);
  }
  return static_cast<std::uint32_t>(found - edges_.begin());
}

Duration CollectivePlans::latency_of(std::uint32_t pattern,
                                     const std::vector<Duration>& latencies) {
  Known& known = patterns_[pattern];
  for (const Known::Trip& trip : known.trips) {
    if (trip.latencies == latencies) return trip.all;
  }
  LibraryCost cost;
  const auto algorithm = algorithm_of(known, cost);
  const GroupKind& kind = kinds_.kind(known.kind);
  std::size_t edge = 0;  // edges are asked for in the order in which they were numbered
  const EdgeSums sums = sum_edges(*algorithm, [&](const CollectiveEdge& of) {
    if (cost.has_trips) return Duration();
    return latencies[edge++] + cost.hop[static_cast<std::size_t>(kinds_.hop_kind(kind, of))];
  });
  known.trips.push_back({.latencies = latencies, .all = cost.start + sums.latency});
  return known.trips.back().all;
}

Duration CollectivePlans::route_of_edge(const CollectiveEdge& edge,
                                        const GroupKinds::Place& place) {
  route_.clear();
  if (!edge.link) return route_of(cluster_, chips_[edge.from], chips_[edge.to], route_);
  route_.push_back(place.links[(*edge.link).index()]);
  return cluster_.fabric.link(route_.front()).latency;
}

void CollectivePlans::find_ways(std::uint32_t edges, CommunicatorId communicator, GroupId group,
                                EdgeWays& ways) {
  const Fabric& fabric = cluster_.fabric;
  const GroupKinds::Place& place = place_of(communicator, group);
  const GroupKind& kind = kinds_.kind(place.kind);
  chips_of(communicator, group);
  ways.parts.clear();
  ways.latencies.clear();
  ways.kinds.clear();
  for (std::uint32_t number = 0; number < edges_[edges].size(); ++number) {
    const CollectiveEdge& edge = edges_[edges][number];
    ways.kinds.push_back(kinds_.hop_kind(kind, edge));
    ways.latencies.push_back(route_of_edge(edge, place));
    if (!edge.link) {
      for (const LinkId link : route_) ways.parts.push_back({fabric.spread(link), number});
      continue;
    }
    // The message takes this link, which may belong to a group.
    const LinkId link = route_.front();
    ways.parts.push_back({{link, 1}, number});
    const LinkUse spread = fabric.spread(link);
    if (spread.link != link) ways.parts.push_back({spread, number});
    if (!edge.adds || cluster_.adders.empty()) continue;
    const std::size_t to = fabric.link(link).to.index();
    if (to < cluster_.adders.size() && cluster_.adders[to]) {
      ways.parts.push_back({{*cluster_.adders[to], 1}, number, true});
    }
  }
}

}  // namespace stepsim
