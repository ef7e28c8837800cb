#include "sim/run/collectives/collective_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "sim/collectives/choose_algorithm.h"
#include "sim/hardware/chip_route.h"
#include "sim/hardware/group_links.h"
#include "sim/hardware/group_shape.h"
#include "sim/run/collectives/collective_task.h"

namespace stepsim {
namespace {

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
    ChosenCollective chosen = chosen_for(work, group);
    plan.cost = chosen.way.cost;
    plan.taken = taken_of(cluster_.chip, chosen.way.cost);
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
  const std::uint64_t hash =
      (static_cast<std::uint64_t>(asked.bytes.value()) * 0x9e3779b97f4a7c15U) ^
      std::uint64_t{kind} << 32 ^ static_cast<std::uint64_t>(asked.op) << 8;
  const auto [first, last] = by_work_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    const Known& like = patterns_[known->second];
    if (like.kind == kind && like.work == asked) {
      return known->second;
    }
  }
  const std::uint32_t number = add_pattern(work, first_like(work, group));
  by_work_.emplace(hash, number);
  return number;
}

// The way of a collective must not depend on which group asks for it first.
GroupId CollectivePlans::first_like(CollectiveWorkId work, GroupId group) {
  const CommunicatorId communicator = work_of(work).communicator;
  const std::uint32_t kind = place_of(communicator, group).kind;
  GroupId first(0);
  while (place_of(communicator, first).kind != kind) first = GroupId(first.index() + 1);
  return first;
}

CollectiveTask CollectivePlans::task(const Known& known) const {
  CollectiveTask task = task_of(graph_, known.work);
  task.in_one_piece = true;
  return task;
}

// Works out one way in a group.
CollectivePlans::Tried CollectivePlans::try_way(const Known& known, const CollectiveWay& way,
                                                GroupId group) {
  const GroupKinds::Place& place = place_of(known.work.communicator, group);
  const GroupKind& kind = kinds_.kind(known.kind);
  const auto algorithm = choose_algorithm(task(known), way.algorithm, kind.shape);
  const Bytes chunk = algorithm->forwarded_chunk();
  chips_of(known.work.communicator, group);
  Tried tried;
  Duration longest_chunk{};
  tried.sums = sum_edges(*algorithm, [&](const CollectiveEdge& edge) {
    tried.latencies.push_back(route_of_edge(edge, place));
    if (way.cost.has_trips) return Duration();
    const auto hop = static_cast<std::size_t>(kinds_.hop_kind(kind, edge));
    Duration trip = tried.latencies.back() + way.cost.hop[hop];
    if (chunk > Bytes(0)) {
      const Duration of_chunk = duration_from_seconds(
          way.cost.wire[hop] * static_cast<double>(chunk.value()) / narrowest(route_).value());
      longest_chunk = std::max(longest_chunk, of_chunk);
      trip += of_chunk;
    }
    return trip;
  });
  // The last link's chunk is one of all the bytes that it carries.
  tried.latency = way.cost.start + tried.sums.latency - longest_chunk;
  tried.edges = number_of(std::move(tried.sums.edges));
  find_ways(tried.edges, known.work.communicator, group, ways_);
  tried.seconds = to_seconds(tried.latency);
  double moving = 0;
  for (const LinkLoads::Load& load : LinkLoads(ways_, tried.sums.bytes)) {
    moving =
        std::max(moving, load.of(way.cost.wire) / cluster_.fabric.bandwidth(load.link).value());
  }
  tried.seconds += moving;
  return tried;
}

Bandwidth CollectivePlans::narrowest(const std::vector<LinkId>& route) const {
  Bandwidth least = cluster_.fabric.width(cluster_.fabric.spread(route.front()));
  for (const LinkId link : route) {
    least = std::min(least, cluster_.fabric.width(cluster_.fabric.spread(link)));
  }
  return least;
}

std::uint32_t CollectivePlans::add_pattern(CollectiveWorkId work, GroupId group) {
  patterns_.push_back(work_out(work, group, work_of(work).algorithm, false));
  return static_cast<std::uint32_t>(patterns_.size() - 1);
}

CollectivePlans::Known CollectivePlans::work_out(CollectiveWorkId work, GroupId group,
                                                 AlgorithmChoice asked, bool among_members) {
  const CollectiveWork& of = work_of(work);
  Known known{.work = of,
              .kind = place_of(of.communicator, group).kind,
              .way = {},
              .pattern = {},
              .trips = {}};
  const GroupKind& kind = kinds_.kind(known.kind);
  GroupLinks links = kind.links;
  links.adder = adder_of(cluster_, of.type);
  std::vector<CollectiveWay> ways =
      ways_of(cluster_.library, task(known), switches_can_add(of.type), asked, kind.shape, links);
  if (among_members) {
    std::erase_if(ways, [&](const CollectiveWay& way) {
      const auto algorithm = choose_algorithm(task(known), way.algorithm, kind.shape);
      return algorithm->endpoints() > algorithm->members();
    });
  }
  if (ways.empty()) return known;
  std::vector<Tried> tried;
  for (const CollectiveWay& way : ways) tried.push_back(try_way(known, way, group));
  const std::size_t best = fastest(tried);
  if (ways[best].why.empty()) ways[best].why = why_of(asked, ways, tried, best);
  known.way = std::move(ways[best]);
  known.trips.push_back(
      {.latencies = std::move(tried[best].latencies), .all = tried[best].latency});
  known.pattern = {.edges = tried[best].edges,
                   .bytes = std::move(tried[best].sums.bytes),
                   .sent = tried[best].sums.sent,
                   .cost = known.way.cost,
                   .taken = taken_of(cluster_.chip, known.way.cost)};
  return known;
}

// Without a library the first in the order of the table that is at most 1 % slower than the
// fastest: ways that differ by trips alone take turns otherwise.
std::size_t CollectivePlans::fastest(const std::vector<Tried>& tried) const {
  const double least = std::ranges::min(tried, {}, &Tried::seconds).seconds;
  const double most = cluster_.library.ideal() ? 1.01 * least : least;
  const auto first =
      std::ranges::find_if(tried, [&](const Tried& one) { return one.seconds <= most; });
  return static_cast<std::size_t>(first - tried.begin());
}

std::string CollectivePlans::why_of(AlgorithmChoice asked, const std::vector<CollectiveWay>& ways,
                                    const std::vector<Tried>& tried, std::size_t best) const {
  const auto text = [&](std::size_t way) {
    char time[32];
    std::snprintf(time, sizeof time, "%.1f us", 1e6 * tried[way].seconds);
    std::string name(name_of(ways[way].algorithm));
    if (!ways[way].protocol.empty()) name += " " + ways[way].protocol;
    return name + " " + time;
  };
  const bool was_asked = asked != AlgorithmChoice::kAuto;
  std::string why = was_asked ? "it was asked for" : "";
  if (ways.size() == 1) return was_asked ? why : "there is no other way in this group";
  why += (was_asked ? ", and is fastest alone as " : "it is fastest alone: ") + text(best);
  for (std::size_t way = 0, listed = 0; way < ways.size(); ++way) {
    if (way != best) why += (listed++ == 0 ? ", before " : ", ") + text(way);
  }
  return why;
}

ChosenCollective CollectivePlans::chosen_for(CollectiveWorkId work, GroupId group) {
  return chosen(patterns_[pattern_of(work, group)].way, work, group);
}

std::optional<ChosenCollective> CollectivePlans::chosen_among_members(CollectiveWorkId work,
                                                                      GroupId group) {
  const GroupId first = first_like(work, group);
  const Known known = work_out(work, first, AlgorithmChoice::kAuto, true);
  if (known.trips.empty()) return std::nullopt;
  return chosen(known.way, work, group);
}

ChosenCollective CollectivePlans::chosen(const CollectiveWay& way, CollectiveWorkId work,
                                         GroupId group) {
  const CollectiveWork& asked = work_of(work);
  chips_of(asked.communicator, group);
  // Links of switches are those of this group.
  return {.chips = chips_,
          .way = way,
          .algorithm =
              choose_algorithm(task_of(graph_, asked), way.algorithm, describe(cluster_, chips_))};
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
  const LibraryCost& cost = known.way.cost;
  const GroupKind& kind = kinds_.kind(known.kind);
  const auto algorithm = choose_algorithm(task(known), known.way.algorithm, kind.shape);
  // Edges are asked for in the order in which they were numbered.
  const auto trips = [&](const std::vector<Duration>& of_edges) {
    std::size_t edge = 0;
    return sum_edges(*algorithm,
                     [&](const CollectiveEdge& of) {
                       if (cost.has_trips) return Duration();
                       return of_edges[edge++] +
                              cost.hop[static_cast<std::size_t>(kinds_.hop_kind(kind, of))];
                     })
        .latency;
  };
  // What the filling of a pipeline takes is as in the first group.
  const Known::Trip& first = known.trips.front();
  const Duration filling = first.all - cost.start - trips(first.latencies);
  known.trips.push_back({.latencies = latencies, .all = cost.start + trips(latencies) + filling});
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
