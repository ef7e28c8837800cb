#include "experiment/step/fault_effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "experiment/build_cluster.h"
#include "experiment/step/rank_ranges.h"
#include "sim/base/quantity_text.h"
#include "sim/hardware/chip_route.h"
#include "sim/run/collectives/collective_plan.h"
#include "topology/faults.h"
#include "topology/graph/graph_measures.h"

namespace stepsim {
namespace {

constexpr double kSlower = 1e-9;    // less is rounding
constexpr std::size_t kRanges = 8;  // of ranks in a text

std::string text_of(const std::vector<RankId>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + rank_ranges(ranks, kRanges);
}

// What moves on a way by itself, and the link that limits it.
struct AloneTime {
  double seconds = 0;
  std::optional<LinkId> link{};
};

class AloneTimes {
 public:
  AloneTimes(const OpGraph& graph, const Cluster& cluster)
      : cluster_(cluster), plans_(graph, cluster, Granularity::kPipelined, Fidelity::kFlow) {}

  AloneTime collective(CollectiveWorkId work, GroupId group) {
    const CollectivePlan plan = plans_.plan_of(work, group);
    AloneTime time;
    for (const LinkUse& use : plan.uses) add(use, plan.bytes, time);
    time.seconds += to_seconds(plan.latency);
    return time;
  }

  AloneTime message(Bytes bytes, std::uint32_t from_chip, std::uint32_t to_chip) {
    route_.clear();
    const Duration latency = route_of(cluster_, from_chip, to_chip, route_);
    AloneTime time;
    for (const LinkId link : route_) add(cluster_.fabric.spread(link), bytes, time);
    time.seconds += to_seconds(latency);
    return time;
  }

  // Of a group the first link.
  std::string name_of(LinkId link) const {
    const Fabric& fabric = cluster_.fabric;
    if (link.index() < fabric.links().size()) return fabric.link_name(link);
    return fabric.link_name(fabric.groups()[link.index() - fabric.links().size()].links.front());
  }

 private:
  void add(const LinkUse& use, Bytes bytes, AloneTime& time) const {
    const double seconds = static_cast<double>(bytes.value()) / cluster_.fabric.width(use).value();
    if (seconds <= time.seconds) return;
    time = {seconds, use.link};
  }

  const Cluster& cluster_;
  CollectivePlans plans_;
  std::vector<LinkId> route_;
};

// How often the ops of a program do a thing in a step.
struct ProgramTraffic {
  std::map<std::uint32_t, double> collectives;  // by work
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, double>
      sends;  // by communicator, peer and bytes
};

std::vector<ProgramTraffic> traffic_of(const OpGraph& graph) {
  std::vector<ProgramTraffic> all(graph.programs.size());
  for (std::size_t program = 0; program < all.size(); ++program) {
    for (const Op& op : graph.programs[program].ops) {
      if (op.kind == OpKind::kCollective) ++all[program].collectives[op.work];
      if (op.kind != OpKind::kMessages) continue;
      for (std::uint32_t i = 0; i < op.work_count; ++i) {
        const Message& message = graph.messages[op.work + i];
        if (!message.is_send) continue;
        ++all[program].sends[{message.communicator.index(), message.peer, message.bytes.value()}];
      }
    }
  }
  return all;
}

// The time of a group in a step, without and with the faults.
struct GroupTimes {
  double without = 0;
  double with = 0;
  double most = 0;  // that one collective or message loses, and where
  std::optional<LinkId> link{};

  double lost() const { return with - without; }
  void add(const AloneTime& before, const AloneTime& now, double count) {
    without += count * before.seconds;
    with += count * now.seconds;
    if (now.seconds - before.seconds <= most) return;
    most = now.seconds - before.seconds;
    link = now.link;
  }
};

class EffectFinder {
 public:
  EffectFinder(const OpGraph& graph, const Cluster& whole, const Cluster& cluster)
      : graph_(graph), traffic_(traffic_of(graph)), before_(graph, whole), now_(graph, cluster) {}

  std::vector<SlowedTraffic> find() {
    for (std::uint32_t c = 0; c < graph_.communicators.size(); ++c) {
      SlowedTraffic slowed{
          .name = graph_.communicators[c].name, .axis = graph_.communicators[c].axis, .link = ""};
      const auto& groups = graph_.communicators[c].groups;
      for (std::uint32_t g = 0; g < groups.size(); ++g) {
        if (groups[g].size() > 1) add(slowed, times_of(c, GroupId(g)), groups[g]);
      }
      keep(std::move(slowed));
    }
    find_messages();
    std::ranges::stable_sort(all_, std::ranges::greater{},
                             [](const SlowedTraffic& one) { return one.with_s - one.without_s; });
    return std::move(all_);
  }

 private:
  const ProgramTraffic& of_rank(RankId rank) const {
    return traffic_[graph_.ranks[rank.index()].program.index()];
  }

  GroupTimes times_of(std::uint32_t communicator, GroupId group) {
    GroupTimes times;
    const RankId rank = graph_.communicators[communicator].groups[group.index()].front();
    for (const auto& [work, count] : of_rank(rank).collectives) {
      if (graph_.collective_works[work].communicator.index() != communicator) continue;
      const CollectiveWorkId id(work);
      times.add(before_.collective(id, group), now_.collective(id, group), count);
    }
    return times;
  }

  void find_messages() {
    std::map<std::uint32_t, SlowedTraffic> slowed;  // by communicator
    for (std::uint32_t r = 0; r < graph_.ranks.size(); ++r) {
      std::map<std::pair<std::uint32_t, RankId>, GroupTimes> pairs;
      for (const auto& [key, count] : of_rank(RankId(r)).sends) {
        const auto& [c, peer, bytes] = key;
        const Communicator& communicator = graph_.communicators[c];
        const RankId to = communicator.groups[communicator.seat_of[r].group][peer];
        const std::uint32_t from_chip = graph_.ranks[r].chip;
        const std::uint32_t to_chip = graph_.ranks[to.index()].chip;
        pairs[{c, to}].add(before_.message(Bytes(bytes), from_chip, to_chip),
                           now_.message(Bytes(bytes), from_chip, to_chip), count);
      }
      for (const auto& [key, times] : pairs) {
        SlowedTraffic& of = slowed[key.first];
        of.name = graph_.communicators[key.first].name + " messages";
        of.axis = graph_.communicators[key.first].axis;
        add(of, times, {RankId(r), key.second});
      }
    }
    for (auto& [communicator, one] : slowed) keep(std::move(one));
  }

  void add(SlowedTraffic& slowed, const GroupTimes& times, const std::vector<RankId>& ranks) const {
    ++slowed.groups;
    if (times.lost() <= kSlower * times.with) return;
    ++slowed.slowed;
    if (times.lost() <= slowed.with_s - slowed.without_s) return;
    slowed.ranks = ranks;
    slowed.link = times.link ? now_.name_of(*times.link) : "";
    slowed.without_s = times.without;
    slowed.with_s = times.with;
  }
  void keep(SlowedTraffic slowed) {
    if (slowed.slowed > 0) all_.push_back(std::move(slowed));
  }

  const OpGraph& graph_;
  std::vector<ProgramTraffic> traffic_;
  AloneTimes before_;
  AloneTimes now_;
  std::vector<SlowedTraffic> all_;
};

// The chips nearest to a node: itself if it is one.
std::pair<std::uint32_t, std::vector<std::uint32_t>> nearest_chips(const Cluster& whole,
                                                                   NodeId node) {
  const auto hops = hops_from(whole.fabric, node);
  std::pair<std::uint32_t, std::vector<std::uint32_t>> nearest;
  for (std::uint32_t chip = 0; chip < whole.places.chips.size(); ++chip) {
    const auto away = hops[whole.places.chips[chip].index()];
    if (!away) continue;
    if (nearest.second.empty() || *away < nearest.first) nearest = {*away, {}};
    if (*away == nearest.first) nearest.second.push_back(chip);
  }
  return nearest;
}

std::vector<FaultyLink> faulty_links(const Faults& faults, const Cluster& whole,
                                     const OpGraph& graph) {
  std::map<std::uint32_t, RankId> rank_on;  // by chip
  for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
    rank_on.emplace(graph.ranks[rank].chip, rank);
  }
  std::map<NodeId, std::pair<std::uint32_t, std::vector<std::uint32_t>>> nearest;
  const auto chips_near = [&](NodeId node) -> const auto& {
    const auto [place, is_new] = nearest.try_emplace(node);
    if (is_new) place->second = nearest_chips(whole, node);
    return place->second;
  };
  std::vector<FaultyLink> links;
  std::vector<std::set<RankId>> ranks(faults.links.size());
  for (const LinkFault& fault : faults.links) {
    links.push_back({.name = fault.link, .capacity = fault.down ? 0 : *fault.capacity});
  }
  for (const DamagedLink& damaged : damaged_links(faults, whole.fabric)) {
    ++links[damaged.fault].links;
    const Link& link = whole.fabric.link(damaged.link);
    const auto& from = chips_near(link.from);
    const auto& to = chips_near(link.to);
    for (const std::uint32_t chip : from.first <= to.first ? from.second : to.second) {
      const auto rank = rank_on.find(chip);
      if (rank != rank_on.end()) ranks[damaged.fault].insert(rank->second);
    }
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    links[i].ranks.assign(ranks[i].begin(), ranks[i].end());
  }
  return links;
}

}  // namespace

std::string FaultyLink::text() const {
  const std::string state =
      capacity == 0 ? "down" : fmt::format("at {:.3g} % of its bandwidth", 100 * capacity);
  return fmt::format("{} is {}; behind it {}", name, state,
                     ranks.empty() ? "no rank" : text_of(ranks));
}

std::string SlowedTraffic::text() const {
  const auto amount = [](double seconds) { return to_text(duration_from_seconds(seconds)); };
  std::string text =
      fmt::format("{}: {} a step instead of {} among {}, which wait for {}", name, amount(with_s),
                  amount(without_s), text_of(ranks), link.empty() ? "longer ways" : link);
  if (groups > 1) {
    text += fmt::format(" ({} of {} groups {} slower)", slowed, groups, slowed == 1 ? "is" : "are");
  }
  return text;
}

FaultEffects fault_effects(const Experiment& experiment, const Cluster& cluster,
                           const OpGraph& graph) {
  const Faults& faults = experiment.cluster.faults;
  if (faults.links.empty()) return {};
  Experiment healthy = experiment;
  healthy.cluster.faults = {};
  const Cluster whole = cluster_for_steps(healthy);
  return {.links = faulty_links(faults, whole, graph),
          .traffic = EffectFinder(graph, whole, cluster).find()};
}

}  // namespace stepsim
